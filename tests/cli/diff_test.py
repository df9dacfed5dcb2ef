"""`tailtrace diff`: recordings of programs that are known to differ, or not to."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

import cases
from recorded import PROGRAM, SOURCE, InFolder


class Diff(InFolder):
    def build(self, name, *options, above=""):
        """A program, made of its source with more above it."""
        folder = pathlib.Path(self.folder, name)
        folder.mkdir()
        source = folder / "rounds.c"
        source.write_text(above + pathlib.Path(SOURCE).read_text(encoding="utf-8"),
                          encoding="utf-8")
        program = str(folder / "rounds")
        subprocess.run(["gcc", "-g", "-O0", source, "-o", program, *options], check=True)
        return program

    def diff(self, here, there, status, *words):
        outcome = cases.tailtrace("diff", "--json", "--module=rounds", here, there, *words)
        self.assertEqual(outcome.returncode, status, outcome.stdout + outcome.stderr)
        return json.loads(outcome.stdout)

    def test_the_same_run_is_the_same(self):
        here, there = self.record(name="here"), self.record(name="there")
        document = self.diff(here, there, 0)
        self.assertEqual(document["divergences"], [])
        self.assertGreater(document["same_calls"], 60)
        outcome = cases.tailtrace("diff", "--module=rounds", here, there)
        self.assertEqual(outcome.returncode, 0)
        self.assertIn("no difference", outcome.stdout)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_a_recording_that_a_debugger_began_where_a_function_begins_only_begins_later(self):
        cases.needs_engine(self, "step")
        program = self.build("built")
        whole = self.record(program, "3", name="whole")
        begun = str(pathlib.Path(self.folder, "begun"))
        scripts = pathlib.Path(__file__).resolve().parents[2] / "gdb-scripts" / "tailtrace.py"
        commands = [f"source {scripts}",
                    f"target remote | {cases.TAILTRACE} serve - {program} 3", "tbreak *main",
                    "continue", "tailtrace start", "tbreak _exit", "continue",
                    f"tailtrace save {begun}", "kill"]
        said = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off",
                               *(word for command in commands for word in ("-ex", command))],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=cases.HANG_S, check=False)
        self.assertIn("Saved 1 thread", said.stdout, said.stderr)
        first = json.loads(cases.tailtrace("history", "--json", begun, "1").stdout)["items"][0]
        self.assertEqual((first["function"], first["offset"]), ("main", "0x0"))
        for here, there in ((whole, begun), (begun, whole)):
            self.assertEqual(self.diff(here, there, 0)["divergences"], [])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_a_recording_that_a_debugger_began_inside_a_function_only_begins_later(self):
        cases.needs_engine(self, "step")
        program = self.build("built")  # in which GDB stops behind the begin of main
        whole = self.record(program, "3", name="whole")
        begun = str(pathlib.Path(self.folder, "begun"))
        outcome = cases.tailtrace("run", "--engine=step", "--keep=" + begun, "-batch",
                                  "-ex", "continue", "--", program, "3", stdin=subprocess.DEVNULL)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        first = json.loads(cases.tailtrace("history", "--json", begun, "1").stdout)["items"][0]
        self.assertEqual(first["function"], "main")
        self.assertNotEqual(first["offset"], "0x0")
        for here, there in ((whole, begun), (begun, whole)):
            self.assertEqual(self.diff(here, there, 0)["divergences"], [])

    def test_one_round_more_is_found_where_the_loop_goes_on(self):
        here = self.record(PROGRAM, "3", name="here")
        there = self.record(PROGRAM, "4", name="there")
        found = self.diff(here, there, 1)["divergences"]
        # The loop of main was left in one and went on in the other.
        forks = [one for one in found if one["what"] == "path"]
        self.assertEqual([one["function"] for one in forks], ["main"])
        fork = forks[0]["here"]["fork"], forks[0]["there"]["fork"]
        self.assertEqual([one["line"] for one in fork], [21, 21])
        self.assertEqual([one["taken"] for one in fork], [False, True])
        calls = {one["function"] for one in found if one["what"] == "calls"}
        self.assertEqual(calls, {"round_begin"})
        extra, = (one for one in found if one["what"] == "calls")
        self.assertEqual(extra["here"], {})

    def test_loops_are_folded_in_the_same_words_everywhere(self):
        here = self.record(PROGRAM, "9", name="nine")
        there = self.record(PROGRAM, "40", name="forty")
        loop = r"x(\d+) loop (rounds\.c:\d+-\d+) \(last exit at :\d+\)  \[-\d+\.\.-\d+\]"
        history = cases.tailtrace("history", "--fold", here, "all").stdout
        calls = cases.tailtrace("calls", "--fold", here, "-500,-1").stdout
        found = re.search(r"(?m)^  " + loop + "$", history)
        self.assertIn(int(found[1]), (8, 9))
        # As JSON in the same places, and nothing is lost.
        items = self.ask("history", here, "--fold", "all")["items"]
        self.assertEqual([one["text"] for one in items if "rounds" in one],
                         re.findall(r"(?m)^  (x\d+ loop .*?)  \[", history))
        ends = [(one.get("first", one.get("number")), one.get("last", one.get("number")))
                for one in items]
        self.assertEqual([first for first, _ in ends], [1] + [last + 1 for _, last in ends[:-1]])
        # In the place of what it calls, between the two parts of main.
        folded = re.search(r"(?m)^    \[-\d+\] +" + loop + "$", calls)
        self.assertEqual(folded.groups(), found.groups())
        self.assertLess(calls.count("round_begin"), 3)
        self.assertEqual(cases.tailtrace("calls", here, "-500,-1").stdout.count("round_begin"), 9)
        # What the other one did more is a loop, left in the same way.
        different = cases.tailtrace("diff", "--module=rounds", here, there).stdout
        self.assertRegex(different, r"(?m)^    there          x\d+ loop rounds\.c:\d+")
        none = cases.tailtrace("diff", "--module=rounds", "--limit=0", here, there)
        self.assertEqual(none.returncode, 1)
        self.assertIn("there are more differences", none.stdout)
        self.assertNotIn("no difference", none.stdout)
        told = self.diff(here, there, 1)["divergences"]
        loops = [one for side in told for one in side["there"].get("loops", [])]
        self.assertTrue(loops and all(one["exit"] for one in loops), told)

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_another_build_of_the_same_source_is_no_difference(self):
        plain = self.build("plain")
        # Other instructions, the same lines further down.
        other = self.build("other", "-fomit-frame-pointer", above="int before;\n" * 3)
        here, there = self.record(plain, name="here"), self.record(other, name="there")
        self.diff(here, there, 0)
        longer = self.record(other, "4", name="longer")
        self.assertEqual(self.diff(here, longer, 1)["more"], False)

    def test_what_cannot_be_compared_is_an_error(self):
        session = self.record()
        self.assert_error(cases.tailtrace("diff", session, self.folder + "/none"), 7, "none",
                          "No such file")
        self.assert_error(cases.tailtrace("diff", session), 2, "arguments of tailtrace diff",
                          "OTHER")


if __name__ == "__main__":
    cases.main()
