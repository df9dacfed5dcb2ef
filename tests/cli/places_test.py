"""Places that are asked for by one of several names, or that are not there at all."""

import json
import os
import re
import shutil
import subprocess
import unittest

import cases
from recorded import InFolder

NAMES = os.path.join(cases.BINARY_DIR, "tests/programs/several_names")
RARE_PARTS = os.path.join(cases.BINARY_DIR, "tests/programs/rare_parts")
SCOPES = os.path.join(cases.BINARY_DIR, "tests/programs/scopes")


def hits(answer):
    return answer["threads"][0]["count"]


class SeveralNames(InFolder):
    """Whatever a function is called, it is reached where GDB's breakpoints stop."""

    def test_any_name_of_a_function_will_do(self):
        session = self.record(NAMES)
        for name in ("twice", "doubled"):
            with self.subTest(name):
                self.assertEqual(hits(self.ask("hits", session, name)),
                                 self.hits_in_gdb(name, NAMES))
                path = self.ask("last", session, name)["threads"][0]["hits"][0]["path"]
                self.assertEqual(path[1]["function"], "main")
                self.assertEqual(self.ask("calls", session, name)["count"], 8)

    def test_a_name_may_lack_what_debuggers_do_not_ask_for(self):
        session = self.record(SCOPES)
        names = ("rework", "::rework", "rework(int)", "Worker::rework", "Part::rework",
                 "inner::Worker::rework", "Worker::rework(int)", "inner::Worker::rework(int)",
                 "turn", "Worker::turn", "turn<int>", "turn<double>", "again", "inner::again",
                 "again<double>", "again<double>(double)", "~Worker", "Worker::~Worker",
                 "operator int", "Worker::operator+", "Worker::operator<<", "tagged",
                 "inner::tagged[abi:cxx11]", "hidden", "(anonymous namespace)::hidden",
                 "main::{lambda(int)#1}::operator()")
        commands = [f"break {name}" for name in names]
        commands += [f"ignore {i + 1} 1000000" for i in range(len(names))]
        text = self.gdb(*commands, "run", "info breakpoints", program=SCOPES)
        told = re.findall(r"already hit (\d+) time", text)
        self.assertEqual(len(told), len(names), text)
        for name, count in zip(names, told):
            with self.subTest(name):
                self.assertEqual(hits(self.ask("hits", session, name)), int(count))
        for name in ("ework", "er::rework", "turn<long>", "rework(char)", "Part::turn"):
            outcome = cases.tailtrace("hits", session, name)
            self.assertEqual((outcome.returncode, outcome.stdout), (1, ""), name)

    def test_what_is_chosen_as_the_program_starts_is_reached_where_it_was_chosen(self):
        session = self.record(NAMES)
        found = self.ask("hits", session, "sum_up_to")
        chosen, = {hit["function"] for hit in found["threads"][0]["hits"]}
        self.assertIn(chosen, ("plain_sum", "quick_sum"))
        self.assertEqual(hits(found), 3)
        self.assertEqual(hits(found), hits(self.ask("hits", session, chosen)))
        self.assertEqual(self.ask("calls", session, "sum_up_to")["count"], 3)
        # GDB stops at the resolver as well.
        self.assertEqual(self.hits_in_gdb("sum_up_to", NAMES), 4)

    def test_what_the_library_chose_is_reached_though_it_may_have_no_name(self):
        session = self.record(NAMES)
        for name in ("memcpy", "strlen"):
            with self.subTest(name):
                found = self.ask("last", "--limit=100000", session, "libc.so.6`" + name)
                # By the stub through which the program calls into the library.
                paths = [[frame.get("function") for frame in hit["path"]]
                         for hit in found["threads"][0]["hits"]]
                calls = [path for path in paths if name + "@plt" in path]
                self.assertEqual(len(calls), 4)
                self.assertEqual({path[path.index(name + "@plt") + 1] for path in calls}, {"main"})


class Lines(InFolder):
    """A source line is reached where GDB's breakpoints are, in optimized code as well: there many
    lines may begin at one instruction, and one line in many places."""

    def test_of_optimized_code(self):
        for name in ("rounds", "recursion", "inlined_often"):
            with self.subTest(name):
                source = os.path.join(os.path.dirname(__file__), f"../programs/{name}.c")
                program = os.path.join(self.folder, name)
                subprocess.run(["gcc", "-g", "-O2", "-o", program, source], check=True)
                with open(source, encoding="utf-8") as file:
                    lines = range(1, len(file.readlines()) + 1)
                self.assert_hits_of_each_line(program, f"{name}.c", lines)

    def assert_hits_of_each_line(self, program, source, lines):
        commands = [f"break {source}:{line}" for line in lines]
        commands += [f"ignore {line} 1000000" for line in lines]
        text = self.gdb(*commands, "run", "info breakpoints", program=program)
        # Where a line has no statement, GDB takes the next that has; behind the last none is made.
        taken = {int(number): int(line) for number, line in
                 re.findall(r"^Breakpoint (\d+) at 0x\w+: file .*, line (\d+)\.$", text, re.M)}
        hit = r"^(\d+) +breakpoint .*\n\tbreakpoint already hit (\d+)"
        counts = {int(number): int(count) for number, count in re.findall(hit, text, re.M)}
        session = self.record(program, name=source)
        reached = 0
        for line in lines:
            with self.subTest(line=line):
                outcome = cases.tailtrace("hits", "--json", session, f"{source}:{line}")
                if "no statement begins" in outcome.stderr:
                    self.assertNotEqual(taken.get(line), line)
                    continue
                count = hits(json.loads(outcome.stdout))
                self.assertEqual(count, counts.get(line, 0))
                reached += count != 0
        self.assertGreater(reached, 5)


class NoSuchPlace(InFolder):
    """That there is no such place is said, and what there is that is like it."""

    def assert_missing(self, session, place, why="", fix=""):
        what = f"there is no code at {place[1:]}" if place[0] == "*" else f"`{place}`"
        for verb, option in (("hits", ""), ("last", ""), ("why", ""), ("find", "--in=")):
            with self.subTest(verb, place=place):
                outcome = cases.tailtrace(verb, session, option + place)
                self.assert_error(outcome, 1, what, why, fix)

    def test_a_function(self):
        session = self.record(NAMES)
        nowhere = "no file of which code was executed has it"
        self.assert_missing(session, "twise", nowhere, "`twice`, if that is meant")
        self.assert_missing(session, "sum_up_tp", nowhere, "`sum_up_to`, if that is meant")
        self.assert_missing(session, "several_names`nexer", nowhere, "`never`, if that is meant")
        self.assert_missing(session, "libnone.so`twice", "no file is called `libnone.so`")
        self.assert_missing(session, "other.c:twice", nowhere, "`twice`")
        self.assert_missing(session, "twyce+0x4", nowhere, "`twice`")
        self.assert_error(cases.tailtrace("hits", session, "listed"), 1,
                          "nobody knows where `listed` is", "what chooses it names none")
        self.assert_error(cases.tailtrace("calls", session, "twise"), 1, "function `twise`")

    def test_a_function_of_a_class(self):
        session = self.record(SCOPES)
        for place in ("rewrok", "Worker::rewrk", "worker::Rework"):
            self.assert_missing(session, place, "", "`outer::inner::Worker::rework`")

    def test_a_line(self):
        session = self.record(NAMES)
        for line, why, other in ((4, "the next such line is 5", 5), (6, "such line is 8", 8),
                                 (1000, "the last such line is 3", 3)):
            self.assert_missing(session, f"several_names.c:{line}", why,
                                f"`several_names.c:{other}")
        self.assert_missing(session, "other/several_names.c:5", "has such a file",
                            "programs/several_names.c:5`, if that is meant")
        program = self.compile("lineless.c", "int main(void) { return 0; }\n", "gcc", "-g0")
        self.assert_missing(self.record(program, name="no_lines"), "lineless.c:1",
                            "has such a file; there is none of lineless", "-g")

    def test_an_address(self):
        self.assert_missing(self.record(NAMES), "*0x1139", "no file is mapped there",
                            "MODULE+OFFSET")

    def test_what_was_not_executed_is_there(self):
        session = self.record(NAMES)
        for place in ("never", "several_names.c:8", "several_names+0x1"):
            outcome = cases.tailtrace("last", session, place)
            self.assertEqual(outcome.returncode, 1)
            self.assertIn("was not reached in what is held", outcome.stderr)
            self.assertEqual(cases.tailtrace("hits", session, place).stderr, "")

    def test_a_function_that_is_only_inlined_is_there(self):
        source = "static inline __attribute__((always_inline)) int more(int n) { return ++n; }\n" \
                 "int main(int n, char** v) { return n > 9 ? more(*v[0]) : 0; }\n"
        program = self.compile("inline.c", source, "gcc")
        outcome = cases.tailtrace("hits", self.record(program), "more")
        self.assertEqual((outcome.returncode, outcome.stderr), (1, ""))

    @unittest.skipUnless(shutil.which("strip"), "no strip")
    def test_files_without_names_are_told(self):
        program = self.compile("nameless.c", "int main(void) { return 0; }\n", "gcc", "-static")
        subprocess.run(["strip", program], check=True)
        self.assert_missing(self.record(program), "main", "there are no names in nameless")

    def compile(self, name, source, compiler, *options):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        program = os.path.splitext(path)[0]
        subprocess.run([compiler, "-g", "-O1", *options, "-o", program, path], check=True)
        return program


class RareParts(InFolder):
    """Linkers put what is rarely executed of a function before the rest of it."""

    def test_a_line_begins_where_the_function_goes_through_it(self):
        session = self.record(RARE_PARTS)
        self.assertEqual(hits(self.ask("hits", session, "rare_parts.c:" + line_of("in both"))), 100)
        self.assertEqual(hits(self.ask("hits", session, "rare_parts.c:" + line_of("in the rare"))),
                         10)
        lines = cases.tailtrace("coverage", "--lcov", session).stdout.splitlines()
        self.assertIn(f"DA:{line_of('in both')},100", lines)


def line_of(comment):
    with open(os.path.join(os.path.dirname(__file__), "../programs/rare_parts.c")) as source:
        return str([comment in line.partition("//")[2] for line in source][1:].index(True) + 2)


if __name__ == "__main__":
    cases.main()
