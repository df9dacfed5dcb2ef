"""`tailtrace run --lldb`: LLDB and the program at one terminal, and the program's exit status."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cases
import run_cases
import terminal
from run_cases import TALKS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debuggers"))
import lldb_stock  # noqa: E402

FORKS = os.path.join(cases.BINARY_DIR, "tests/programs/forks")
PROMPT = r"\(lldb\) "


class LldbCase(cases.EngineCase):
    def setUp(self):
        super().setUp()
        if lldb_stock.why_not():
            self.skipTest(lldb_stock.why_not())


class Batch(run_cases.Batch, LldbCase):
    EXIT_7 = "exited with status = 7"
    PID = r"Process (\d+) stopped"

    def run_batch(self, text, *commands, debugger=(), program=(TALKS,), env=None):
        options = [*debugger, *(word for command in commands for word in ("-o", command))]
        return subprocess.run([cases.TAILTRACE, "run", "--lldb", f"--engine={self.engine}", "-x",
                               "-b", *options, "--", *program], input=text, capture_output=True,
                              text=True, timeout=cases.HANG_S, check=False, env=env)

    def test_returns_128_and_the_signal_that_ended_the_program(self):
        self.assertEqual(self.run_batch("signal 9\n", "continue").returncode, 128 + 9)

    def test_records_before_the_users_first_command(self):
        outcome = self.run_batch("", "next", "thread trace dump instructions --count 4",
                                 "thread trace dump info")
        self.assertIn("Number of individual errors: 0\n", outcome.stdout)
        self.assertRegex(outcome.stderr, "the newest [0-9,]+ branches are kept, and LLDB is given")
        self.assertRegex(outcome.stdout, r"(?m)^  talks`main .*at talks\.c:11:")

    def test_goes_on_when_lldb_lets_go_what_the_program_has_forked(self):
        outcome = self.run_batch("", "breakpoint set --line 20", "continue", program=(FORKS,))
        self.assertRegex(outcome.stdout, r"main at forks\.c:20:")
        self.assertNotIn("exited", outcome.stdout)

    def test_shows_what_a_file_of_commands_says(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lldb") as file:
            file.write("script print(6 * 7)\n")
            file.flush()
            outcome = self.run_batch("", debugger=("-s", file.name))
        self.assertIn("\n(lldb) script print(6 * 7)\n42\n", outcome.stdout)

    def test_a_signal_has_its_name_in_lldb(self):
        outcome = self.run_batch("signal 10\n", "continue")
        self.assertIn("stop reason = signal SIGUSR1", outcome.stdout)


class AtATerminal(LldbCase):
    def start(self, *commands):
        options = [word for command in commands for word in ("-o", command)]
        session = terminal.Terminal(cases.TAILTRACE, "run", "--lldb", f"--engine={self.engine}",
                                    "-x", "--no-use-colors", *options, "--", TALKS)
        self.addCleanup(session.close)
        session.expect(r"stop reason = one-shot breakpoint 1")
        session.expect(PROMPT)
        # A moment after its first prompt LLDB is told to wait for the program.
        end = time.monotonic() + cases.HANG_S
        while time.monotonic() < end:
            session.type("script lldb.debugger.GetAsync()\n")
            waits = session.expect(r"\n(True|False)\n")[1] == "False"
            session.expect(PROMPT)
            if waits:
                return session
        return self.fail("LLDB does not wait for the program:\n" + session.text)

    def resume(self, session):
        session.type("continue\n")
        session.expect("ready\n")

    def test_program_is_typed_to_while_it_runs_and_lldb_while_it_does_not(self):
        session = self.start()
        self.resume(session)
        session.type("good morning\n")
        session.expect("heard: good morning\n")
        session.expect("complained\n")
        session.type("status 5\n")
        session.expect("exited with status = 5")
        session.expect(PROMPT)
        session.type("script 6 * 7\n")
        session.expect(r"\n42\n")
        session.type("quit\n")
        self.assertEqual(session.exit_status(), 5)

    def test_control_c_stops_the_program_and_the_history_shows_where(self):
        session = self.start()
        self.resume(session)
        session.type("spin\n")
        session.expect("spinning\n")
        session.interrupt()
        session.expect("stop reason = signal SIGINT")
        session.expect(PROMPT)
        session.type("thread trace dump instructions --count 3\n")
        session.expect(r"\n    \d+: 0x[0-9a-f]+ +\w+")
        session.expect(PROMPT)
        session.type("process kill\n")
        session.expect("exited with status = 9")
        session.type("quit\n")
        self.assertEqual(session.exit_status(), 0)

    # LLDB is asynchronous while it does that, and whoever looked then took it for the prompt.
    def test_lldb_waits_for_the_program_behind_a_breakpoint_with_commands(self):
        wait = "import time; [time.sleep(0.001) for _ in iter(lldb.debugger.GetAsync, False)]"
        self.start("breakpoint set --line 15", f"breakpoint command add -s python -o '{wait}'",
                   "process continue")

    def test_end_of_input_is_the_programs(self):
        session = self.start()
        self.resume(session)
        session.type("\x04")
        session.expect("exited with status = 0")


class WithoutLldb(cases.CommandCase):
    def outcome(self, scripts):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in scripts.items():
                path = pathlib.Path(folder, name)
                path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
                path.chmod(0o755)
            return cases.tailtrace("run", "--lldb", "--", TALKS, env={"PATH": folder})

    def test_says_how_to_get_one(self):
        self.assert_error(self.outcome({}), 3, "cannot start LLDB", why="no lldb in PATH",
                          fix="sudo apt-get install lldb-22")

    def test_says_that_it_is_too_old(self):
        outcome = self.outcome({"lldb": "echo lldb version 14.0.6\n"})
        self.assert_error(outcome, 3, "cannot start LLDB", why="older than version 15",
                          fix="sudo apt-get install lldb-22")


cases.for_each_engine(globals(), Batch, AtATerminal)

if __name__ == "__main__":
    cases.main()
