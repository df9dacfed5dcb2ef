"""`tailtrace run`: GDB and the program at one terminal, and the program's exit status."""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import cases
import run_cases
import terminal
from run_cases import TALKS

STAIRS = os.path.join(cases.BINARY_DIR, "tests/programs/stairs")
SMALL_STACK_BYTES = 1 << 20
PROMPT = r"\(gdb\) "


class Batch(run_cases.Batch, cases.EngineCase):
    EXIT_7 = "exited with code 07"
    PID = r"process (\d+)"
    SAY_PID = ("info inferiors",)

    def run_batch(self, text, *commands, debugger=(), program=(TALKS,), env=None):
        options = [*debugger, *(word for command in commands for word in ("-ex", command))]
        return subprocess.run([cases.TAILTRACE, "run", f"--engine={self.engine}", "-nx", "-batch",
                               *options, "--", *program], input=text, capture_output=True,
                              text=True, timeout=cases.HANG_S, check=False, env=env)

    def test_returns_128_and_the_signal_that_ended_the_program(self):
        self.assertEqual(self.run_batch("signal 9\n", "continue").returncode, 128 + 9)
        self.assertEqual(self.run_batch("signal 11\n", "continue", "continue").returncode,
                         128 + 11)

    def test_works_in_a_folder_of_any_name_and_leaves_the_program_its_environment(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "a b:c,d")
            os.mkdir(folder)
            for name in ("tailtrace", "libtailtrace_gdbserver.so", "libtailtrace_qemu.so"):
                shutil.copy(os.path.join(os.path.dirname(cases.TAILTRACE), name), folder)
            program = os.path.join(folder, "tailtrace")
            commands = ["-ex", "record stop", "-ex", "continue"]
            shell = ["/bin/sh", "-c", "env; ls -l /proc/$$/fd"]
            outcome = subprocess.run([program, "run", f"--engine={self.engine}", "-nx", "-batch",
                                      *commands, "--", *shell], capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, timeout=cases.HANG_S, check=False)
        self.assertIn("PATH=", outcome.stdout, outcome.stderr)
        for word in ("LD_PRELOAD", "libtailtrace"):
            self.assertNotIn(word, outcome.stdout + outcome.stderr)

    def test_executes_what_may_not_record_as_without_us(self):
        with tempfile.TemporaryDirectory() as folder:
            plugin = shutil.copy(os.path.join(os.path.dirname(cases.TAILTRACE),
                                              "libtailtrace_qemu.so"), folder)
            programs = [["/bin/sh", "-c", f"rm {plugin}; exec echo executed"]]
            if os.geteuid() == 0:
                programs.append(["setpriv", "--reuid=65534", "echo", "executed"])
            for program in programs:
                env = dict(os.environ)
                if os.path.exists(plugin):
                    env["TAILTRACE_QEMU_PLUGIN"] = plugin
                outcome = self.run_batch("", "record stop", "continue", program=program, env=env)
                self.assertIn("executed\n", outcome.stdout, outcome.stderr)
                self.assertIn("exited normally]", outcome.stdout, outcome.stderr)

    def test_says_why_a_command_line_is_too_long_for_gdbserver(self):
        words = ["/bin/sh", "-c", "echo $#", *["x" * 100000] * 2]
        outcome = self.run_batch("", "record stop", "continue", program=words)
        if self.engine == "step":
            self.assertIn("why:  Argument list too long\n", outcome.stderr)
        else:
            self.assertIn("1\n", outcome.stdout, outcome.stderr)

    def test_returns_gdbs_status_if_the_program_did_not_end(self):
        self.assertEqual(self.run_batch("").returncode, 0)

    def test_records_before_the_users_first_command(self):
        outcome = self.run_batch("", "next 2", "info record", "record function-call-history /c")
        self.assertIn("Recording format: Intel Processor Trace.", outcome.stdout)
        self.assertRegex(outcome.stdout, r"Recorded \d+ instructions in \d+ functions \(0 gaps\)")
        self.assertRegex(outcome.stdout, r"(?m)^\d+\t +\S*setvbuf$")

    def test_core_file_is_the_programs(self):
        # A small stack: GDB reads and writes all of it.
        before = resource.getrlimit(resource.RLIMIT_STACK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_STACK, before)
        resource.setrlimit(resource.RLIMIT_STACK, (SMALL_STACK_BYTES, before[1]))
        with tempfile.TemporaryDirectory() as folder:
            core = os.path.join(folder, "core")
            outcome = self.run_batch("", "break top", "continue", "stepi", "reverse-stepi",
                                     f"generate-core-file {core}", program=(STAIRS,))
            self.assertIn(f"Saved corefile {core}", outcome.stdout, outcome.stderr)
            # Neither qemu's memory nor our rings are in it.
            self.assertLess(os.stat(core).st_size, 64 << 20)
            read = subprocess.run(["gdb", "-nx", "-batch", "-ex", "backtrace", STAIRS, core],
                                  capture_output=True, text=True, timeout=cases.HANG_S, check=False)
        calls = re.findall(r"(?m)^#\d+ .*?(\w+) \(", read.stdout)
        self.assertEqual(calls[-3:], ["top", "middle", "main"], read.stdout + read.stderr)

    def test_killed_ends_the_program_and_the_server_too(self):
        with subprocess.Popen([cases.TAILTRACE, "run", f"--engine={self.engine}", "-nx", "-batch",
                               "-ex", "continue", "--", TALKS], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as process:
            while process.stdout.readline() != "ready\n":
                self.assertIsNone(process.poll())
            family = cases.children_of(process.pid)
            process.kill()
            for pid in family:
                cases.wait_until_gone(pid)


class AtATerminal(cases.EngineCase):
    def start(self):
        session = terminal.Terminal(cases.TAILTRACE, "run", f"--engine={self.engine}", "-nx", "--",
                                    TALKS)
        self.addCleanup(session.close)
        session.expect(r"Temporary breakpoint 1, main")
        session.expect(PROMPT)
        return session

    def resume(self, session):
        session.type("continue\n")
        session.expect("ready\n")

    def test_program_is_typed_to_while_it_runs_and_gdb_while_it_does_not(self):
        session = self.start()
        self.resume(session)
        session.type("good morning\n")
        session.expect("heard: good morning\n")
        session.expect("complained\n")
        session.type("status 5\n")
        session.expect("exited with code 05")
        session.expect(PROMPT)
        session.type("print 6 * 7\n")
        session.expect(r"\$1 = 42")
        session.type("quit\n")
        self.assertEqual(session.exit_status(), 5)

    def test_one_that_is_asked_to_end_takes_gdb_with_it(self):
        session = self.start()
        self.resume(session)
        family = cases.children_of(session.pid)
        os.kill(session.pid, signal.SIGTERM)
        for pid in family:
            cases.wait_until_gone(pid)
        self.assertEqual(session.exit_status(), 0)  # GDB's own

    def test_control_c_stops_the_program_and_the_history_shows_where(self):
        session = self.start()
        self.resume(session)
        session.type("spin\n")
        session.expect("spinning\n")
        session.interrupt()
        session.expect("received signal SIGINT")
        session.expect(PROMPT)
        session.type("record instruction-history -\n")
        session.expect(r"\n\d+\t +0x[0-9a-f]+ <\w+\+\d+>:")
        session.expect(PROMPT)
        session.type("reverse-stepi\n")
        session.expect(PROMPT)
        session.type("info record\n")
        session.expect(r"Replay in progress")
        session.expect(PROMPT)
        self.assertEqual(session.leave_gdb(), 0)

    def test_control_z_stops_the_program_for_gdb(self):
        session = self.start()
        self.resume(session)
        session.type("\x1a")
        session.expect("received signal SIGTSTP")
        session.expect(PROMPT)
        session.type("signal 0\n")
        session.expect("with no signal")
        session.type("status 3\n")
        session.expect("exited with code 03")

    def test_control_c_at_the_prompt_is_gdbs(self):
        session = self.start()
        session.interrupt()
        session.expect("Quit")
        session.expect(PROMPT)
        self.resume(session)
        session.type("status 3\n")
        session.expect("exited with code 03")

    def test_end_of_input_is_the_programs(self):
        session = self.start()
        self.resume(session)
        session.type("\x04")
        session.expect("exited normally")


cases.for_each_engine(globals(), Batch, AtATerminal)

if __name__ == "__main__":
    cases.main()
