"""plugin/try: the tour, and a program of one's own at a terminal."""

import os
import re
import subprocess
import tempfile

import cases
import terminal

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TRY = os.path.join(ROOT, "plugin/try")
TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")
PROMPT = r"\(gdb\) $"


class Try(cases.CommandCase):
    def setUp(self):
        if os.path.normpath(cases.BINARY_DIR) != os.path.join(ROOT, "build/release"):
            self.skipTest("plugin/try builds into build/release, which is not what is tested")
        if cases.doctor()["auto"] is None:
            self.skipTest("no engine works here; see tailtrace doctor")

    def run_try(self, *arguments, **environment):
        return subprocess.run([TRY, "--no-install", *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=600, check=False,
                              env=dict(os.environ, **environment))

    def test_tour_shows_a_programs_history_and_steps_back(self):
        outcome = self.run_try()
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        commands = re.split(r"(?m)^\(gdb\) (.*)\n", outcome.stdout)
        answers = dict(zip(commands[1::2], commands[2::2]))
        self.assertRegex(answers["info record"], r"Recorded [1-9]\d* instructions")
        self.assertRegex(answers["record function-call-history /c"], r"(?m)^\d+\t +\S+")
        self.assertRegex(answers["record instruction-history /f"], r"(?m)^\d+\t +0x[0-9a-f]+ <")
        self.assertRegex(answers["reverse-stepi"], r"0x[0-9a-f]+")
        self.assertRegex(answers["backtrace"], r"(?m)^#1 ")
        self.assertIn("killed", answers["kill"])

    def test_own_program_is_stopped_at_main_recording(self):
        session = terminal.Terminal(TRY, "--no-install", "-nx", "--", TALKS)
        self.addCleanup(session.close)
        session.expect(r"Temporary breakpoint 1, main")
        session.expect(PROMPT)
        session.type("info record\n")
        session.expect(r"Active record target: record-btrace")
        session.expect(PROMPT)
        self.assertEqual(session.leave_gdb(), 0)

    def test_options_without_a_program_are_told(self):
        self.assert_error(self.run_try("-nx"), 2, "no program", fix="-- PROGRAM")

    def test_missing_packages_are_only_named(self):
        # A dpkg-query that knows no package.
        with tempfile.TemporaryDirectory() as folder:
            query = os.path.join(folder, "dpkg-query")
            with open(query, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nexit 1\n")
            os.chmod(query, 0o755)
            outcome = self.run_try(PATH=folder + ":" + os.environ["PATH"])
        self.assert_error(outcome, 1, "packages are missing", why="qemu-user",
                          fix="apt-get install")


if __name__ == "__main__":
    cases.main()
