"""A system call that Ctrl-C interrupts in a program under qemu goes on when the program does, also
when GDB has it call a function in between, as in one that GDB itself debugs."""

import os
import shutil
import subprocess
import tempfile
import unittest

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests", "programs", "waits")
COMMANDS = """
handle SIGUSR1 stop print pass
python
import os, signal, threading
# The numbers of poll, select, pause and nanosleep, as the program and qemu make them, and of
# restart_syscall.
WAITS = {"7", "23", "34", "35", "130", "219", "230", "270", "271"}

def send_when_it_waits(number, pid):
    try:
        while True:
            with open(f"/proc/{pid}/syscall") as call, open(f"/proc/{pid}/stat") as stat:
                if call.read().split()[0] in WAITS and stat.read().rpartition(")")[2][1] == "S":
                    return os.kill(pid, number)
    except (OSError, IndexError):
        return None  # it has ended

def go_on(number):
    pid = gdb.selected_inferior().pid
    threading.Thread(target=send_when_it_waits, args=(number, pid), daemon=True).start()
    gdb.execute("continue")

for _ in range(4):
    go_on(signal.SIGINT)
    gdb.execute("IN_BETWEEN")
    go_on(signal.SIGUSR1)
end
continue
"""


@unittest.skipUnless(shutil.which("gdb") and shutil.which("qemu-x86_64"), "no gdb or no qemu")
class InterruptedCalls(unittest.TestCase):
    def assert_they_go_on(self, debugger, behind, in_between):
        with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
            script.write(COMMANDS.replace("IN_BETWEEN", in_between))
            script.flush()
            command = [*debugger, "-nx", "-batch", *behind[:-1], "-x", script.name, behind[-1],
                       PROGRAM]
            outcome = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL,
                                     text=True, timeout=cases.HANG_S, check=False)
        text = outcome.stdout + outcome.stderr
        self.assertEqual(text.count("received signal SIGINT"), 4, text)
        self.assertEqual(text.count("received signal SIGUSR1"), 4, text)
        self.assertIn("exited normally", text)

    def test_in_gdb_itself(self):
        self.assert_they_go_on(["gdb"], ["-ex", "start", "--args"], "print 0")

    def test_under_qemu(self):
        self.assert_they_go_on([cases.TAILTRACE, "run", "--engine=qemu"], ["--"],
                                "print (int)getpid()")


if __name__ == "__main__":
    cases.main()
