"""Calls of one function, each as a whole: `tailtrace calls SESSION FUNCTION`. The program's source
says how often who calls whom."""

import os
import re
import subprocess

import cases
from recorded import PROGRAM, InFolder

LONG_WAY = os.path.join(cases.BINARY_DIR, "tests/programs/long_way")
EXCEPTIONS = os.path.join(cases.BINARY_DIR, "tests/programs/exceptions")


class CallsOfAFunction(InFolder):
    def calls(self, session, function, *words):
        document = self.ask("calls", session, function, *words)
        self.assertEqual(document["count"], len(document["calls"]))
        return document["calls"]

    def test_are_as_many_as_the_source_says_and_lie_in_each_other(self):
        session = self.record(PROGRAM, "3")
        rounds = self.calls(session, "round_work")
        leaves = self.calls(session, "leaf", "--limit=1000")
        self.assertEqual((len(rounds), len(leaves)), (3, 60))
        for outer in rounds:
            self.assertEqual((outer["caller"]["function"], outer["caller"]["line"]), ("main", 23))
            inside = [leaf for leaf in leaves
                      if outer["first"] < leaf["first"] and leaf["last"] < outer["last"]]
            self.assertEqual(len(inside), 20)
        self.assertEqual({(leaf["caller"]["function"], leaf["caller"]["line"]) for leaf in leaves},
                         {("round_work", 13)})
        for one in leaves[:3]:
            items = self.ask("history", session, f"{one['first']},{one['last']}")["items"]
            self.assertEqual({item["function"] for item in items}, {"leaf"})
            self.assertTrue(items[-1]["text"].startswith("ret"), items)

    def test_are_a_line_each(self):
        session = self.record(PROGRAM, "3")
        told = cases.tailtrace("calls", session, "rounds`leaf")
        self.assertEqual(told.returncode, 0, told.stderr)
        lines = told.stdout.splitlines()
        self.assertEqual(lines[-1], "  60 calls, the newest 50 shown")
        self.assertEqual(len(lines), 51)
        caller = r"called from rounds\.c:13  round_work$"
        self.assertRegex(lines[0], r"^    \[-\d+,-\d+\] +leaf  " + caller)

    def test_are_shown_down_to_a_level(self):
        session = self.record(PROGRAM, "3")
        outer = self.ask("calls", session, "--newest=4000", "-4000,-1", "--depth=1")["calls"]
        both = self.ask("calls", session, "--newest=4000", "-4000,-1", "--depth=2")["calls"]
        self.assertEqual({one["level"] for one in outer}, {min(one["level"] for one in both)})
        self.assertEqual(len({one["level"] for one in both}), 2)

    def test_have_times_where_those_are_known(self):
        session = self.record(PROGRAM, "3")
        timed = [one["time"] for one in self.ask("calls", session, "all")["calls"] if "time" in one]
        self.assertGreater(len(timed), 3)
        self.assertEqual(timed, sorted(timed))
        told = cases.tailtrace("calls", session, "--times", "all").stdout
        self.assertEqual(len(re.findall(r"  time \d+$", told, re.MULTILINE)), len(timed))

    def levels_of_the_c_library(self, program, name):
        """(Function, how many calls on the stack) of each part of what is called there."""
        calls = self.ask("calls", self.record(program, name=name), "all")["calls"]
        for one in calls:
            caller, depth = one, 0
            while "caller" in caller:
                depth += not caller.get("tail_called", False)
                caller = calls[caller["caller"] - 1]
            if "libc.so" in one.get("module", ""):
                yield one.get("function"), depth

    def test_of_a_stripped_program_are_at_the_levels_that_names_tell(self):
        stripped = os.path.join(self.folder, "exceptions")
        subprocess.run(["strip", "-o", stripped, EXCEPTIONS], check=True)
        named = list(self.levels_of_the_c_library(EXCEPTIONS, "named"))
        self.assertGreater(len(named), 100)
        self.assertEqual(list(self.levels_of_the_c_library(stripped, "stripped")), named)

    def test_none_is_an_answer_and_lines_are_no_functions(self):
        session = self.record(PROGRAM, "1")
        outcome = cases.tailtrace("calls", session, "abort")
        self.assertEqual((outcome.returncode, outcome.stdout), (1, "  0 calls\n"))
        self.assert_error(cases.tailtrace("calls", session, "rounds.c:13"), 2,
                          "`rounds.c:13` is called by nobody", "it is no function")
        self.assert_error(cases.tailtrace("calls", session, "file.c:"), 2, "`file.c:`",
                          "behind the colon")

    def test_that_are_far_from_each_other_have_their_callers(self):
        session = self.record(LONG_WAY)
        far, near = self.ask("last", "--limit=2", session, "mark")["threads"][0]["hits"]
        self.assertGreater(near["number"] - far["number"], 20_000_000)
        for hit in far, near:
            self.assertEqual([frame["function"] for frame in hit["path"]][:2], ["mark", "main"])
        shown = cases.tailtrace("last", "--limit=2", session, "mark").stdout
        self.assertEqual(shown.count("called from long_way.c:"), 2, shown)
        self.assertTrue(shown.endswith(
            "what called that is further back than the 16777216 items that are looked at\n"), shown)


if __name__ == "__main__":
    cases.main()
