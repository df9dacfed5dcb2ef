"""Libraries that a program unloads and replaces: what they executed keeps its names, whatever is in
their places afterwards."""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import cases

PROGRAMS = os.path.join(cases.BINARY_DIR, "tests/programs")
PROGRAM = os.path.join(PROGRAMS, "replaces_library")
# In the order in which they are loaded; each `plug` calls its step once more than the one before.
LOADED = ("first", "second", "first", "first")
STEPS = {"first": 1 + 3 + 4, "second": 2}


class Recorded(cases.EngineCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def record(self, *libraries, program=PROGRAM):
        recording = os.path.join(self.folder, "recording")
        options = ["--no-debugger", "--keep=" + recording]
        if self.engine == "step":
            options = ["--engine=step", "--on-crash=" + recording, "--on-call=finish"]
        outcome = cases.tailtrace("run", *options, "--ring=1048576", "--", program, *libraries)
        self.assertIn("tailtrace history " + recording, outcome.stderr)
        self.assertNotIn("-", outcome.stdout)
        return recording

    def ask(self, verb, recording, *words):
        outcome = cases.tailtrace(verb, "--json", recording, *words)
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
        return json.loads(outcome.stdout)


def line_of(source, text):
    """The first one with that text in it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/libraries", source)
    with open(path, encoding="ascii") as lines:
        return next(number for number, line in enumerate(lines, 1) if text in line)


class Libraries(Recorded):
    def assert_hits(self, recording, name, place):
        """Of a function, of one that is inlined there, of a line and of an address."""
        library, source = f"{name}_{place}.so", f"{name}.c"
        symbols = subprocess.run(["nm", os.path.join(PROGRAMS, library)], capture_output=True,
                                 text=True, check=True).stdout
        in_file = int(re.search(rf"(?m)^(\w+) T {name}_step$", symbols)[1], 16)
        for location in (f"{name}_step", f"{name}_inlined", f"{library}+{in_file:#x}",
                         f"{source}:{line_of(source, 'step(int x)')}"):
            hits, = self.ask("hits", recording, location)["threads"]
            self.assertEqual(hits["count"], STEPS[name], location)
            for hit in hits["hits"]:
                self.assertEqual(int(hit["address"], 16) % 0x1000, in_file % 0x1000)
                self.assertEqual(hit["function"], f"{name}_step")
                self.assertEqual(os.path.basename(hit["file"]), source)
                self.assertEqual(os.path.basename(hit["module"]), library)
                self.assertEqual(hit["inlined"][0]["function"], f"{name}_inlined")
        last, = self.ask("last", recording, f"{name}_step")["threads"]
        path = [(frame["function"], os.path.basename(frame.get("file", "")))
                for frame in last["hits"][0]["path"][:5]]
        self.assertEqual(path, [(f"{name}_step", source), (f"{name}_step@plt", ""),
                                ("plug", source), ("use", "replaces_library.c"),
                                ("main", "replaces_library.c")])

    def assert_calls(self, recording, place):
        calls = self.ask("calls", recording, "plug")["calls"]
        self.assertEqual([os.path.basename(call["module"]) for call in calls],
                         [f"{name}_{place}.so" for name in LOADED])
        for name, times in STEPS.items():
            steps = self.ask("calls", recording, name + "_step@plt")["calls"]
            callers = [(step["caller"]["function"], os.path.basename(step["caller"]["file"]),
                        step["caller"]["line"]) for step in steps]
            line = line_of(name + ".c", "sum += " + name)
            self.assertEqual(callers, [("plug", name + ".c", line)] * times)

    def assert_coverage(self, recording):
        files = {os.path.basename(file["file"]): file
                 for file in self.ask("coverage", recording)["files"]}
        for name, times in STEPS.items():
            lines = {line["line"]: line["times"] for line in files[name + ".c"]["lines"]}
            self.assertEqual(lines[line_of(name + ".c", "sum += " + name)], times)
            self.assertEqual(lines[line_of(name + ".c", "int plug")], LOADED.count(name))

    def assert_all(self, recording, place):
        for name in STEPS:
            self.assert_hits(recording, name, place)
        self.assert_calls(recording, place)
        self.assert_coverage(recording)
        self.assert_exported(recording, place)

    def assert_exported(self, recording, place):
        """As profiles and as coverage of each file."""
        drcov = os.path.join(self.folder, "run.drcov")
        cases.tailtrace("export", "--format=drcov", "-o", drcov, recording)
        with open(drcov, "rb") as file:
            modules, _, blocks = file.read().partition(b" bbs\n")
        numbers = {os.path.basename(line.split()[-1]): int(line.split(",")[0])
                   for line in modules.decode().splitlines() if ".so" in line}
        executed = [module for _, _, module in struct.iter_unpack("<IHH", blocks)]
        for name, times in STEPS.items():
            library = f"{name}_{place}.so"
            self.assertGreater(executed.count(numbers[library]), 10)
            profile = cases.tailtrace("export", "--format=bolt", "--file=" + library, recording)
            counts = [int(line.split()[-2]) for line in profile.stdout.splitlines()
                      if line.startswith("B ")]
            self.assertIn(times, counts)

    def check_libraries(self, place):
        recording = self.record(*(f"{PROGRAMS}/{name}_{place}.so" for name in LOADED))
        self.assert_all(recording, place)
        saved = os.path.join(self.folder, "saved")
        outcome = cases.tailtrace("save", recording, saved)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assert_all(saved, place)

    def test_names_outlive_libraries(self):
        self.check_libraries("any")

    def test_of_libraries_in_one_place_each_has_its_own_names(self):
        self.check_libraries("same")

    def test_each_thread_has_the_names_of_its_time(self):
        recording = self.record(*(f"{PROGRAMS}/{name}_same.so" for name in LOADED),
                                program=os.path.join(PROGRAMS, "replaces_for_thread"))
        for name in STEPS:
            threads = self.ask("hits", recording, name + "_step")["threads"]
            self.assertEqual([thread["count"] for thread in threads],
                             [LOADED.count(name), 2 * LOADED.count(name)])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_a_debugger_is_told_these_names(self):
        saved = os.path.join(self.folder, "saved")
        commands = ["break finish", "continue", f"monitor tailtrace save {saved}"]
        commands += [f"monitor tailtrace hits 100 {name}_step" for name in STEPS]
        words = [word for command in commands for word in ("-ex", command)]
        outcome = cases.tailtrace(
            "run", "--engine=" + self.engine, "-batch", "-iex", "set debuginfod enabled off",
            *words, "--", PROGRAM, *(f"{PROGRAMS}/{name}_same.so" for name in LOADED))
        shown = outcome.stdout + outcome.stderr
        for name, times in STEPS.items():
            self.assertEqual(shown.count(f'"function":"{name}_step"'), times, shown)
            hits, = self.ask("hits", saved, name + "_step")["threads"]
            self.assertEqual(hits["count"], times)

    def test_another_library_at_the_path_gives_no_names(self):
        path = os.path.join(self.folder, "plug.so")
        shutil.copy(f"{PROGRAMS}/first_same.so", path)
        recording = self.record(path, f"{PROGRAMS}/second_same.so")
        shutil.copy(f"{PROGRAMS}/second_same.so", path)
        self.assertIn("2 hits", cases.tailtrace("hits", recording, "second_step").stdout)
        outcome = cases.tailtrace("hits", recording, "first_step")
        if self.engine == "step":  # its file was copied
            self.assertIn("1 hit", outcome.stdout)
        else:
            self.assertIn("cannot name the functions of 1 file(s)", outcome.stderr)


class Replaced(Recorded):
    """A program that is built anew while it runs is named by what it was, as long as it lives, and
    in what is saved meanwhile."""

    def test_it_has_its_names(self):
        if self.engine == "qemu" and os.geteuid() != 0:
            self.skipTest("the kernel gives what was deleted to root only")
        program = os.path.join(self.folder, "program")
        saved = os.path.join(self.folder, "saved")
        shutil.copy(f"{PROGRAMS}/known_path", program)
        other = f"shell rm {program}; cp {PROGRAMS}/nothing {program}"
        commands = [other, "next", "next",
                    f"monitor tailtrace save {saved}", "monitor tailtrace hits 100 start"]
        words = [word for command in commands for word in ("-ex", command)]
        outcome = cases.tailtrace("run", "--engine=" + self.engine, "-batch", "-iex",
                                  "set debuginfod enabled off", *words, "--", program)
        shown = outcome.stdout + outcome.stderr
        self.assertEqual(shown.count('"function":"start"'), 1, shown)
        hits, = self.ask("hits", saved, "start")["threads"]
        self.assertEqual(hits["count"], 1)


cases.for_each_engine(globals(), Libraries)
cases.for_each_engine(globals(), Replaced)

if __name__ == "__main__":
    cases.main()
