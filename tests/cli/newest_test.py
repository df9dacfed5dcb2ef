"""What is shown of the newest part alone is the end of what is shown of the whole."""

import os
import re
import shutil
import tempfile

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")
POSITION = re.compile(r" *\[-\d")


class Newest(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.session = os.path.join(self.folder, "session")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + self.session, "--", PROGRAM,
                                  "200")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)

    def lines(self, verb, *words):
        outcome = cases.tailtrace(verb, self.session, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        # Positions are padded and calls indented by what else is shown; headers are repeated.
        return [re.sub(r" +", " ", line).strip() for line in outcome.stdout.splitlines()
                if POSITION.match(line)]

    def test_instructions(self):
        whole = self.lines("history", "all")
        self.assertGreater(len(whole), 20000)
        self.assertEqual(self.lines("history"), whole[-50:])
        self.assertEqual(self.lines("history", "-"), whole[-50:])
        self.assertEqual(self.lines("history", "-7000,-6901"), whole[-7000:-6900])
        self.assertEqual(self.lines("history", "-7000,+20"), whole[-7000:-6980])
        self.assertEqual(self.lines("history", "-99999999,-1"), whole)

    def test_calls(self):
        whole = self.lines("calls", "all")
        self.assertGreater(len(whole), 500)
        self.assertEqual(self.lines("calls"), whole[-50:])
        self.assertEqual(self.lines("calls", "-400,-391"), whole[-400:-390])
        self.assertEqual(self.lines("calls", "--newest=100")[1:],
                         whole[-len(self.lines("calls", "--newest=100")) + 1:])

    def test_with_hardly_a_cache_they_are_the_same(self):
        self.assertEqual(self.lines("history", "--cache=4KiB", "-7000,-6901"),
                         self.lines("history", "-7000,-6901"))
        outcome = cases.tailtrace("history", "--cache=much", self.session)
        self.assert_error(outcome, 2, "much")

    def test_what_is_not_there_is_said(self):
        outcome = cases.tailtrace("history", self.session, "-99999999,-99999998")
        self.assertEqual(outcome.returncode, 1)
        counted = cases.tailtrace("history", "--forward", self.session, "99999998,99999999")
        self.assertEqual(counted.returncode, 1)
        self.assertEqual(outcome.stderr.splitlines()[1:], counted.stderr.splitlines()[1:])


if __name__ == "__main__":
    cases.main()
