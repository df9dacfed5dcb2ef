"""What `tailtrace run` promises with each debugger."""

import os
import re
import tempfile

import cases

TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")


class Batch:
    """For a test case with run_batch(text, *commands, debugger, program, env): text is typed,
    and `debugger` are options of its own."""

    EXIT_7 = None  # what the debugger says of a program that exited with 7
    PID = None     # a pattern for a process in what it says
    SAY_PID = ()   # the commands that have it say that

    def test_returns_the_programs_exit_status(self):
        outcome = self.run_batch("status 7\n", "continue")
        self.assertEqual(outcome.returncode, 7, outcome.stderr)
        self.assertIn(self.EXIT_7, outcome.stdout)

    def test_programs_arguments_are_its_own(self):
        arguments = ["a b", "*", "--engine=x", "--", "$HOME", "", "'q'", '"', "-ex", "-o", "\\"]
        outcome = self.run_batch("", "continue", program=(TALKS, *arguments))
        said = [line for line in outcome.stdout.splitlines() if line.startswith("<")]
        self.assertEqual(said, [f"<{word}>" for word in arguments], outcome.stdout)

    def test_programs_descriptors_are_the_users(self):
        outcome = self.run_batch("hello\n", "continue")
        self.assertIn("heard: hello\n", outcome.stdout)
        self.assertIn("complained\n", outcome.stderr)
        for talk in ("created; pid", "Listening", "Remote debugging from", "GDBserver"):
            self.assertNotIn(talk, outcome.stderr)

    def test_ends_with_a_debugger_that_never_connects(self):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, TAILTRACE_SESSIONS=folder, TMPDIR=folder)
            outcome = self.run_batch("", debugger=("--no-such-option",), env=env)
            self.assertEqual(os.listdir(folder), [])
        self.assertIn("no-such-option", outcome.stderr)
        self.assertEqual(outcome.returncode, 1)

    def test_leaves_no_file_and_no_process_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            places = ("TMPDIR", "XDG_RUNTIME_DIR", "TAILTRACE_SESSIONS")
            env = dict(os.environ, **{place: folder for place in places})
            outcome = self.run_batch("", "next", *self.SAY_PID, env=env)
            self.assertEqual(os.listdir(folder), [])
        self.assertRegex(outcome.stdout, self.PID)
        pid = re.search(self.PID, outcome.stdout)[1]
        self.assertFalse(os.path.exists(f"/proc/{pid}"), outcome.stdout)
