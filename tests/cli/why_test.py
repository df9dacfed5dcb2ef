"""`tailtrace why`, against what the source says decided."""

import json
import os
import re
import signal
import subprocess

import cases
from recorded import DETOURS, SOURCE, InFolder


def decisions_in_source(way):
    """The lines that detours.cpp says decided, the last one first."""
    found = {}
    with open(os.path.join(os.path.dirname(SOURCE), "detours.cpp"), encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            for word in line.partition("// ")[2].split():
                if match := re.fullmatch(rf"(?:{way}|main)#(\d+)", word):
                    found[int(match[1])] = number
    return [found[place] for place in sorted(found)]


def lines_of(reasons):
    """Lines of detours.cpp, each once in a row."""
    lines = [decision["line"] for reason in reasons for decision in reason["decisions"]
             if decision.get("file", "").endswith("detours.cpp")]
    return [line for i, line in enumerate(lines) if lines[i - 1:i] != [line]]


class Why(InFolder):
    def test_why_names_the_decisions_that_the_source_has(self):
        outcome = cases.tailtrace("why", "--json", self.record(), "leaf")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        document = json.loads(outcome.stdout)
        self.assertEqual((document["schema"], document["end"]), ("tailtrace.why/1", "begin"))
        self.assertGreater(document["reasons"][-1]["decisions"][-1]["number"], 0)
        chain = []
        for reason in document["reasons"]:
            for decision in reason["decisions"]:
                place = decision.get("function"), decision.get("line")
                if decision.get("file", "").endswith("rounds.c") and chain[-1:] != [place]:
                    chain.append(place)
        # leaf is called in a loop in a loop: neither what round_begin nor what other leaves did
        # matters, but that both loops went on, that write wrote, and that there was an argument.
        self.assertEqual(chain, [("round_work", 13), ("main", 23), ("main", 21), ("main", 20),
                                 ("main", 18)])
        again = [reason["times"] for reason in document["reasons"]
                 if reason["decisions"][0].get("line") in (13, 21)]
        self.assertEqual(max(again), 19)  # the 20th round of the inner loop
        outcome = cases.tailtrace("why", self.folder + "/session", "abort")
        self.assert_error(outcome, 1, "abort was not reached")

    def compiled(self, text):
        source = os.path.join(self.folder, "around.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        program = source.removesuffix(".c")
        subprocess.run(["gcc", "-g", "-O0", source, "-o", program], check=True)
        return program

    def in_main(self, path, place):
        """What decided in `main` that it came to a place: lines, whether taken, and how often."""
        return [(decision["line"], decision.get("taken"), reason["times"])
                for reason in self.ask("why", path, place)["reasons"]
                for decision in reason["decisions"] if decision["function"] == "main"]

    def test_what_is_saved_knows_the_code_that_was_not_executed(self):
        program = self.compiled("""void end(void) {}
int main(int count) {
  volatile int sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (i == count + 100)
      sum += 7;
    if (i == 2)
      end();
  }
}
""")
        session, saved = self.record(program), os.path.join(self.folder, "saved")
        self.assertEqual(cases.tailtrace("save", session, saved).returncode, 0)
        # Whether the sum was added to made no difference.
        for path in session, saved:
            self.assertEqual(self.in_main(path, "end"), [(8, None, 1), (7, False, 1), (4, True, 3)])
        item = self.ask("why", saved, "end")["item"]
        told = f"cannot tell which branches in {program} decided"
        self.assertNotIn(told, cases.tailtrace("why", saved, f"--at={item}").stderr)
        os.remove(program)
        self.assertIn(told, cases.tailtrace("why", saved, f"--at={item}").stderr)

    def test_behind_an_instruction_that_ends_the_program_nothing_goes_on(self):
        for ending in "ud2", "ud1l 2(%eax), %eax", "hlt":
            program = self.compiled(f"""void end(void) {{}}
int main(int count) {{
  if (count > 100)
    __asm__("{ending}");
  end();
}}
""")
            session = self.record(program, name=ending[:3])
            self.assertEqual(self.in_main(session, "end"), [(5, None, 1), (3, True, 1)], ending)

    def test_why_goes_on_where_neither_a_call_nor_a_return_led_there(self):
        for argument, way in enumerate(("throw", "jump", "context", "handler", "unlikely")):
            with self.subTest(way):
                session = self.record(DETOURS, str(argument), name=way)
                reasons = self.ask("why", session, "arrived")["reasons"]
                self.assertEqual(lines_of(reasons), decisions_in_source(way))

    def test_what_decided_a_crash_is_the_check_before_it(self):
        session = os.path.join(self.folder, "crash")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + session, "--", DETOURS, "5")
        self.assertEqual(outcome.returncode, 128 + signal.SIGSEGV, outcome.stderr)
        document = self.ask("why", session)
        crash, *decided = decisions_in_source("crash")
        self.assertEqual(lines_of(document["reasons"]), decided)
        self.assertNotIn("item", document)
        shown = cases.tailtrace("why", session).stdout
        self.assertRegex(shown, rf"\A  next  detours.cpp:{crash}  ")
        check = document["reasons"][0]["decisions"][0]["position"]
        before = self.ask("why", session, f"--at={check}")
        self.assertEqual(lines_of(before["reasons"]), decided[1:])

    def test_why_names_the_signal_and_the_line_that_it_came_at(self):
        session = self.record(DETOURS, "1", name="signal")
        outcome = cases.tailtrace("why", session, "arrived")
        line = decisions_in_source("jump")[3]
        self.assertRegex(outcome.stdout,
                         rf"signal 11 +to .*jump_out.* detours.cpp:{line}  .*crash\(\)")


if __name__ == "__main__":
    cases.main()
