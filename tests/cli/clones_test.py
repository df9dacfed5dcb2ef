"""A process that is made as threads are is none of the program's threads."""

import json
import os
import signal
import tempfile

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/clones_process")


class ClonesProcess(cases.CommandCase):
    def test_recorder_keeps_the_threads_of_the_program(self):
        cases.needs_engine(self, "step")
        with tempfile.TemporaryDirectory() as folder:
            bundle = os.path.join(folder, "end.tt")
            outcome = cases.tailtrace("run", "--engine=step", "--on-crash=" + bundle, "--", PROGRAM)
            self.assertEqual(outcome.returncode, 128 + signal.SIGABRT, outcome.stderr)
            told = json.loads(cases.tailtrace("info", "--json", bundle).stdout)
        self.assertEqual(len(told["threads"]), 2)
        self.assertEqual({thread["pid"] for thread in told["threads"]}, {told["recorded"]["pid"]})

    def test_it_is_not_watched(self):
        outcome = cases.tailtrace("watch", "child_status", "main", "--", PROGRAM)
        if outcome.returncode in (3, 4):
            self.skipTest(outcome.stderr.replace("\n", " "))
        self.assertEqual(outcome.returncode, 128 + signal.SIGABRT, outcome.stderr)
        self.assertIn("child_status: written 1 time\nmain: executed 1 time\n", outcome.stderr)


if __name__ == "__main__":
    cases.main()
