"""Histories of programs whose source says how often things happen in them."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cases

PROGRAMS = os.path.join(cases.BINARY_DIR, "tests", "programs")


class CountedUnderQemu(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def record(self, program, *options):
        folder = os.path.join(self.scratch, os.path.basename(program) + ".session")
        outcome = cases.tailtrace("run", "--engine=qemu", "--no-debugger", f"--keep={folder}",
                                  *options, "--", os.path.join(PROGRAMS, program))
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return folder

    def hits(self, folder, place):
        """Of each thread that has any, in the order of threads."""
        text = cases.tailtrace("hits", "--limit=0", folder, place).stdout
        return [int(number) for number in re.findall(r"(\d+) hits?, the newest 0 shown", text)]

    def test_instructions_behind_a_fault_were_not_executed(self):
        folder = self.record("faults_counted")
        self.assertEqual(self.hits(folder, "scan+0x4"), [3 * 10])
        self.assertEqual(self.hits(folder, "count_to+0x6"), [20])
        self.assertIn("gaps          0", cases.tailtrace("info", folder).stdout)

    def test_a_child_has_of_its_parent_what_came_before_it(self):
        folder = self.record("forks_and_works")
        self.assertEqual(self.hits(folder, "in_child"), [10] * 5)
        self.assertEqual(self.hits(folder, "in_parent"), [50, 10, 20, 30, 40])
        tracefile = cases.tailtrace("coverage", "--lcov", folder).stdout
        self.assertEqual(re.findall(r"FNDA:(\d+),in_\w+", tracefile), ["50", "50"])
        self.assertNotIn("gaps          1", cases.tailtrace("info", folder).stdout)

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_a_pipe_in_the_place_of_a_source_file_is_not_waited_for(self):
        source, program = (os.path.join(self.scratch, name) for name in ("loop.c", "loop"))
        with open(source, "w") as file:
            file.write("int main(void) {\n  for (int i = 0; i < 3; ++i)\n    ;\n}\n")
        subprocess.run(["gcc", "-g", source, "-o", program], check=True)
        lines = ("coverage", "--lines", "--file=loop.c", self.record(program))
        with_text = cases.tailtrace(*lines).stdout
        os.remove(source)
        os.mkfifo(source)
        without_text = cases.tailtrace(*lines).stdout
        self.assertIn("for (int i", with_text)
        self.assertNotIn("for (int i", without_text)
        self.assertEqual([line.split()[:2] for line in with_text.splitlines()],
                         [line.split()[:2] for line in without_text.splitlines()])

    def test_a_function_that_was_inlined_ran_in_all_its_places(self):
        tracefile = cases.tailtrace("coverage", "--lcov", self.record("inlined_often")).stdout
        part = re.search(r"SF:\S+/inlined_often\.c\n(.*?)end_of_record", tracefile, re.DOTALL)[1]
        lines = dict(re.findall(r"DA:(\d+),(\d+)", part))
        # As gcov has them, of the same program with counters: calls of add() are 3 + 4 of loops, 1
        # and 2. (But for line 10: what is executed of it each time is the loops' ends.)
        expected = {"5": "10", "6": "10", "7": "2", "9": "2", "10": "7"}
        self.assertEqual({line: lines[line] for line in expected}, expected)
        for line in ("13", "14", "15", "16", "22", "23"):
            self.assertEqual(lines[line], "1", line)

    def test_what_was_overwritten_is_told_beside_the_count(self):
        folder = self.record("rounds", "--ring=64")
        info = cases.tailtrace("info", folder).stdout
        overwritten = re.search(r"records +64, (\d+) older ones overwritten", info)[1]
        behind = f"; {overwritten} older records were overwritten"
        for words, text in ((("hits", "main"), "0 hits" + behind),
                            (("calls", "round_work"), "0 calls" + behind),
                            (("hits", "_exit", "--range=-20,-1"), "1 hit"),
                            (("calls", "_exit", "--newest=20"), "1 call")):
            told = cases.tailtrace(words[0], folder, *words[1:])
            self.assertEqual(told.stdout.splitlines()[-1], "  " + text, told.stderr)


if __name__ == "__main__":
    cases.main()
