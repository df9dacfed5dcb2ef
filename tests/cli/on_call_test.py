"""What `--on-call` takes for a function; where it was entered is where the history ends."""

import json
import os
import re
import shutil
import subprocess
import tempfile

import cases


def program_of(name):
    return os.path.join(cases.BINARY_DIR, "tests/programs", name)


class OnCall(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "step")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = os.path.join(folder.name, "end.tt")

    def run_until(self, function, program):
        return cases.tailtrace("run", "--engine=step", f"--on-crash={self.bundle}",
                               f"--on-call={function}", "--", program_of(program))

    def assert_enters(self, program, function, entered):
        with self.subTest(function=function):
            shutil.rmtree(self.bundle, ignore_errors=True)
            outcome = self.run_until(function, program)
            self.assertIn(f"recorded: tailtrace history {self.bundle}\n", outcome.stderr)
            last = cases.tailtrace("history", self.bundle, "-1").stdout.splitlines()[-1]
            self.assertRegex(last, rf"<{entered}>")

    def test_a_name_may_lack_what_debuggers_do_not_ask_for(self):
        for function, entered in (("turn", r"outer::inner::Worker::turn<int>\(int\)"),
                                  ("Worker::rework", r"outer::inner::Worker::rework\(int\)"),
                                  ("hidden", r"\(anonymous namespace\)::hidden\(int\)"),
                                  ("rework", r"rework\(int\)")):  # exactly, so no other
            self.assert_enters("scopes", function, entered)

    def test_of_an_indirect_function_it_is_the_one_that_is_called(self):
        self.assert_enters("several_names", "sum_up_to", "(quick|plain)_sum")
        self.assert_enters("several_names", "doubled", "twice")

    def test_an_indirect_function_of_which_nothing_tells_what_is_called(self):
        self.assert_error(self.run_until("listed", "several_names"), 2, "cannot wait for `listed`",
                          "it is chosen as the program starts, and what chooses it names none")

    def test_a_library_that_is_loaded_later(self):
        self.assert_enters("loads_in_thread", "libm.so.6`cbrt", "(__)?cbrt")
        shutil.rmtree(self.bundle)
        outcome = self.run_until("libm.so.6`no_such", "loads_library")
        self.assertEqual((outcome.returncode, outcome.stdout), (0, "6\n"))
        self.assertIn("error: there is no function `libm.so.6`no_such`\n", outcome.stderr)

    def test_a_library_that_is_never_loaded(self):
        for option in ("--on-call", "--on-write"):
            outcome = cases.tailtrace("run", "--engine=step", f"--on-crash={self.bundle}",
                                      f"{option}=other.so`place", "--", program_of("loads_library"))
            self.assertEqual((outcome.returncode, outcome.stdout), (0, "6\n"))
            self.assertIn("error: there was no other.so`place\n", outcome.stderr)

    def test_a_variable_of_a_library_that_is_loaded_later(self):
        variable = "libcounting.so`counted"
        outcome = cases.tailtrace(
            "run", "--engine=step", f"--on-crash={self.bundle}", f"--on-write={variable}", "--",
            program_of("replaces_library"), program_of("libcounting.so"))
        self.assertEqual((outcome.returncode, outcome.stdout), (0, "0\n"), outcome.stderr)
        last = cases.tailtrace("last", self.bundle).stdout
        self.assertRegex(last, r"^  \[-1\]  counting.c:\d+  count")

    def test_an_address_in_a_file(self):
        path = program_of("several_names")
        names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        place = re.search(r"(?m)^(\w+) T twice$", names).group(1)
        self.assert_enters("several_names", f"several_names+0x{place}", "twice")

    def test_a_string_instruction_takes_as_long_as_its_work_does(self):
        self.assert_enters("fills_memory", "done", "done")
        for function, times in (("copy", 1), ("on_fault", 1), ("differ", 2)):
            hits = cases.tailtrace("hits", self.bundle, function).stdout
            self.assertRegex(hits, rf"(?m)^  {times} hits?$")

    def test_programs_may_run_where_they_could(self):
        outcome = self.run_until("done", "counts_processors")
        count = str(len(os.sched_getaffinity(0)))
        self.assertEqual(outcome.stdout.split(), [count] * 3, outcome.stderr)

    def test_the_vdso_has_names_in_a_recording_too(self):
        self.run_until("done", "reads_clock")
        for function, times in (("time", 3), ("__vdso_time", 3), ("__vdso_gettimeofday", 5)):
            outcome = cases.tailtrace("hits", "--json", self.bundle, function)
            hits = json.loads(outcome.stdout)["threads"][0]["hits"]
            self.assertEqual([hit["module"] for hit in hits], ["[vdso]"] * times, outcome.stderr)

    def test_a_source_line(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                            "../programs/several_names.c")
        with open(path, encoding="ascii") as file:
            line, = (n for n, text in enumerate(file, 1) if text.startswith("int twice("))
        self.assert_enters("several_names", f"several_names.c:{line}", "twice")

    def test_what_is_none(self):
        for place, what in (("no_such_function", "there is no function `no_such_function`"),
                            ("main+4", "cannot wait for `main+4`"),
                            ("scopes.cpp:3", "cannot wait for `scopes.cpp:3`")):
            outcome = self.run_until(place, "scopes")
            self.assert_error(outcome, 2, what)


if __name__ == "__main__":
    cases.main()
