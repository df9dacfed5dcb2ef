"""Programs under qemu that GDB lets go of run to their end as if nobody had held them, whatever was
on its way to GDB then."""

import os
import shutil
import subprocess
import tempfile
import unittest

import cases

PROGRAMS = os.path.join(cases.BINARY_DIR, "tests", "programs")
QUIET = ["-nx", "-batch", "-ex", "set width 0"]


def let_go(program, *commands):
    """What the program says to its end, and GDB before that."""
    words = [word for command in (*commands, "detach") for word in ("-ex", command)]
    command = [cases.TAILTRACE, "run", "--engine=qemu", *QUIET, *words, "--", *program]
    # The program has the other end of the pipe until it ends.
    outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, text=True, timeout=cases.HANG_S,
                             check=False)
    return outcome.stdout


def alone(program):
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, timeout=cases.HANG_S,
                          check=True).stdout


@unittest.skipUnless(shutil.which("gdb") and shutil.which("qemu-x86_64"), "no gdb or no qemu")
class LettingGo(unittest.TestCase):
    def assert_as_alone(self, program, *commands):
        program = [os.path.join(PROGRAMS, program[0]), *program[1:]]
        text = let_go(program, *commands)
        self.assertIn("detached]", text)
        self.assertIn(alone(program), text)

    def test_signals_and_faults_and_traps_reach_the_program(self):
        self.assert_as_alone(["signals"], "break fault", "continue")

    def test_the_signal_that_it_stopped_for_does(self):
        self.assert_as_alone(["signals"], "handle SIGUSR1 stop", "continue")

    def test_threads_that_are_about_to_tell_of_calls_go_on(self):
        self.assert_as_alone(["calls_in_threads"], "catch syscall getppid", *["continue"] * 12)

    def test_threads_at_a_breakpoint_that_is_taken_away_go_on(self):
        self.assert_as_alone(["many_threads", "3", "8"], "break leaf", "continue", "continue")

    def test_one_that_has_met_watched_memory_goes_on(self):
        self.assert_as_alone(["watched"], "watch all.value", *["continue"] * 4)

    def test_what_it_executes_then_runs(self):
        text = let_go(["/bin/sh", "-c", "exec echo executed"])
        self.assertIn("detached]", text)
        self.assertIn("\nexecuted\n", text)

    def test_its_children_execute_others_when_the_server_has_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            word = os.path.join(folder, "word")
            os.mkfifo(word)
            script = f"(read word; /bin/echo lives on; /bin/echo still) < {word} &"
            command = [cases.TAILTRACE, "run", "--engine=qemu", *QUIET, "-ex", "continue", "--",
                       "/bin/sh", "-c", script]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True) as server:
                server.wait(timeout=cases.HANG_S)
                fifo = os.open(word, os.O_RDWR)  # waits for nobody
                os.write(fifo, b"\n")
                self.assertIn("lives on\nstill\n", server.stdout.read())  # to the child's end
                os.close(fifo)


if __name__ == "__main__":
    cases.main()
