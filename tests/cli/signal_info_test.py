"""`$_siginfo` of a program under qemu is what its handler finds, for signals of all origins."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests", "programs", "signal_infos")
# Number and code: man 2 sigaction.
SI_QUEUE, SI_TKILL, SI_KERNEL = -1, -6, 128
SIGNALS = [(11, 1), (11, 2), (11, SI_KERNEL), (11, 1), (11, 2), (11, SI_KERNEL), (4, 2), (8, 1),
           (35, SI_QUEUE), (10, SI_TKILL), (12, SI_QUEUE), (17, 1)]


def tell(info):
    fields = ("si_signo", "si_code", "_sifields._kill.si_pid", "_sifields._kill.si_uid",
              "_sifields._rt.si_sigval.sival_int")
    values = ", ".join(f"(int){info}{field}" for field in fields)
    return ["-ex", "continue", "-ex", rf'printf "is %d %d %d %d %d\n", {values}']


@unittest.skipUnless(shutil.which("gdb") and shutil.which("qemu-x86_64"), "no gdb or no qemu")
class SignalInfo(unittest.TestCase):
    def test_it_is_what_the_handler_finds(self):
        one = tell("$_siginfo.") + tell("info->")
        command = [cases.TAILTRACE, "run", "--engine=qemu", "-nx", "-batch", "-ex",
                   "handle SIGCHLD stop print pass", "-ex", "break on_signal",
                   *one * len(SIGNALS), "-ex", "continue", "--", PROGRAM]
        outcome = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                                 timeout=cases.HANG_S, check=False)
        text = outcome.stdout + outcome.stderr
        infos = [tuple(map(int, line.split())) for line in re.findall(r"^is (.*)$", text, re.M)]
        told, found = infos[::2], infos[1::2]
        self.assertEqual([info[:2] for info in found], SIGNALS, text)
        # The last field is in use with the last two only.
        self.assertEqual([info[:4] for info in told], [info[:4] for info in found], text)
        self.assertEqual(told[-2:], found[-2:], text)
        self.assertEqual((found[0][2], found[-2][4]), (0x1234, 42))
        self.assertIn("exited normally", text)

    def run_script(self, script):
        command = [cases.TAILTRACE, "run", "--engine=qemu", "-nx", "-batch", "-ex",
                   "handle SIG35 nostop", "-ex", "continue", "--", "/bin/sh", "-c", script]
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                              timeout=cases.HANG_S, check=False)

    def test_realtime_signals_end_it_by_their_own_numbers(self):
        outcome = self.run_script("kill -35 $$")
        self.assertIn("Program terminated with signal SIG35,", outcome.stdout)
        self.assertEqual(outcome.returncode, 128 + 35)
        with tempfile.TemporaryDirectory() as folder:
            for command in (["run", "--no-debugger", "--engine=qemu", "--keep=" + folder + "/kept",
                             "--", "/bin/sh", "-c", "kill -35 $$"], ["info", folder + "/kept"]):
                said = subprocess.run([cases.TAILTRACE, *command], capture_output=True, text=True,
                                      timeout=cases.HANG_S, check=False).stdout
        self.assertIn("killed by signal 35", said)

    def test_signals_that_the_program_ignores_have_none(self):
        outcome = self.run_script("trap '' USR1; /bin/true; kill -USR1 $$; echo survived")
        self.assertIn("survived", outcome.stdout)
        self.assertIn("exited normally", outcome.stdout)


if __name__ == "__main__":
    cases.main()
