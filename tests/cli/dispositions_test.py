"""What a program that is recorded without a debugger inherits."""

import os
import subprocess
import tempfile

import cases


class Dispositions(cases.EngineCase):
    """A program ignores the signals that it would ignore without us."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = os.path.join(folder.name, "end.tt")
        self.env = dict(os.environ, XDG_STATE_HOME=folder.name)

    def ignored(self, ignored, *recorder):
        """What the program says that a shell starts which ignores these."""
        words = [*recorder, os.path.join(cases.BINARY_DIR, "tests/programs/ignored_signals")]
        outcome = subprocess.run(["/bin/sh", "-c", f"trap '' {ignored}; exec \"$@\"", "sh", *words],
                                 capture_output=True, text=True, env=self.env,
                                 timeout=cases.HANG_S, check=False)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def test_they_are_as_without_us(self):
        ways = [f"--on-crash={self.bundle}"]
        if self.engine == "qemu":
            ways.append("--no-debugger")
        for way in ways:
            for ignored in ("USR1", "INT QUIT", "PIPE HUP"):
                with self.subTest(way=way, ignored=ignored):
                    recorder = (cases.TAILTRACE, "run", f"--engine={self.engine}", way, "--")
                    self.assertEqual(self.ignored(ignored, *recorder), self.ignored(ignored))


cases.for_each_engine(globals(), Dispositions)

if __name__ == "__main__":
    cases.main()
