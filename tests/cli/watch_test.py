"""`tailtrace watch`: hits of hardware breakpoints, on any machine that has them."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import cases

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/counter.c")
SCOPES = os.path.join(cases.BINARY_DIR, "tests/programs/scopes")
COUNTER = os.path.join(cases.BINARY_DIR, "tests/programs/counter")
SEVERAL_NAMES = os.path.join(cases.BINARY_DIR, "tests/programs/several_names")
LOADS_LIBRARY = os.path.join(cases.BINARY_DIR, "tests/programs/loads_library")
LOADS_IN_THREAD = os.path.join(cases.BINARY_DIR, "tests/programs/loads_in_thread")
TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")
USES_LIBRARY = os.path.join(cases.BINARY_DIR, "tests/programs/uses_library")


class Watch(cases.CommandCase):
    def needs_registers(self, outcome):
        """Where there are no debug registers, or no right to them, nothing can be tried."""
        if outcome.returncode in (3, 4):
            self.skipTest(outcome.stderr.replace("\n", " "))

    def watch(self, *words):
        return cases.tailtrace("watch", *words, "--", COUNTER)

    def hits(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hits.json")
            outcome = self.watch("--json", "--output=" + path, *words)
            self.needs_registers(outcome)
            self.assertEqual(outcome.returncode, 7, outcome.stderr)  # the program's own
            self.assertEqual(outcome.stderr, "")
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def test_writes_of_a_variable_in_all_threads(self):
        told = self.hits("counter")
        self.assertEqual(told["schema"], "tailtrace.watch/1")
        self.assertEqual([(one["what"], one["on"], one["count"]) for one in told["watches"]],
                         [("counter", "written", 8)])
        self.assertEqual([hit["function"] for hit in told["hits"]], ["add"] * 5 + ["set"] * 3)
        self.assertEqual(len({hit["tid"] for hit in told["hits"]}), 2)
        times = [hit["time_ns"] for hit in told["hits"]]
        self.assertEqual(times, sorted(times))

    def test_ends_with_the_program_though_there_are_other_children(self):
        with tempfile.TemporaryDirectory() as folder:
            pid = os.path.join(folder, "pid")
            script = 'sleep 1000 >&- 2>&- & echo $! >"$0"; exec "$@"'
            try:
                outcome = subprocess.run(["/bin/sh", "-c", script, pid, cases.TAILTRACE, "watch",
                                          "counter", "--", COUNTER], capture_output=True,
                                         text=True, timeout=cases.HANG_S, check=False)
            finally:
                with open(pid, encoding="ascii") as file:
                    os.kill(int(file.read()), signal.SIGKILL)
        self.assertIn(outcome.returncode, (3, 4, 7), outcome.stderr)

    def test_one_that_is_asked_to_end_asks_the_program_and_tells_what_it_saw(self):
        with subprocess.Popen([cases.TAILTRACE, "watch", "main", "--", TALKS],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()  # or an end, where there are no debug registers
            process.terminate()
            process.wait(cases.HANG_S)  # its input is open: the signal alone ends it
            said = process.stdout.read(), process.stderr.read()
        outcome = subprocess.CompletedProcess(process.args, process.returncode, *said)
        self.needs_registers(outcome)
        self.assertEqual(outcome.returncode, 128 + signal.SIGTERM)
        self.assertIn("main: executed 1 time", outcome.stderr)

    def test_calls_with_their_registers(self):
        told = self.hits("--registers", "add", "set")
        self.assertEqual([one["count"] for one in told["watches"]], [5, 3])
        self.assertEqual([(hit["what"], int(hit["registers"]["rdi"], 16)) for hit in told["hits"]],
                         [("add", n) for n in range(5)] + [("set", n) for n in range(3)])
        for hit in told["hits"]:
            self.assertEqual(hit["registers"]["rip"], hit["address"])

    def test_reads_count_when_they_are_asked_for(self):
        reads = self.hits("--reads", "counter:8")["watches"][0]
        self.assertEqual(reads["on"], "accessed")
        self.assertEqual(reads["count"], 5 * 2 + 3)

    def test_a_part_of_a_variable_and_the_newest_hits(self):
        told = self.hits("letters+8:1", "counter", "--limit=1")
        self.assertEqual([one["count"] for one in told["watches"]], [1, 8])
        self.assertEqual([hit["what"] for hit in told["hits"]], ["letters+8:1"])

    def test_lines_for_people(self):
        outcome = self.watch("counter")
        self.needs_registers(outcome)
        lines = outcome.stderr.splitlines()
        self.assertEqual(len(lines), 9)
        self.assertRegex(lines[0], r"^ +0\.000 us  \d+  counter written  at 0x[0-9a-f]+  add\+0x")
        self.assertEqual(lines[-1], "counter: written 8 times")

    def test_an_access_is_of_the_line_that_made_it(self):
        with open(SOURCE, encoding="ascii") as file:
            lines = file.read().splitlines()
        (hit,) = self.hits("letters+8:1")["hits"]
        self.assertEqual(hit["line"], lines.index("  letters[8] = 'a';") + 1)

    def test_names_may_lack_what_debuggers_do_not_ask_for(self):
        def watch(name):
            return cases.tailtrace("watch", name, "--", SCOPES)
        for name, times in (("Worker::rework", 1), ("Part::rework", 1), ("rework", 2),
                            ("turn<double>", 2), ("hidden(int)", 1)):
            outcome = watch(name)
            self.needs_registers(outcome)
            self.assertIn(f"{name}: executed {times} time{'s' * (times > 1)}\n", outcome.stderr)
        self.assert_error(watch("turn"), 2, "cannot watch turn", "2 symbols may be meant",
                          "turn<int>(int)")

    def test_names_of_libraries_in_threads_that_those_have_made(self):
        outcome = cases.tailtrace("watch", "count", "counted", "libcounting.so`let_count",
                                  "--", USES_LIBRARY)
        self.needs_registers(outcome)
        self.assertEqual(outcome.returncode, 7, outcome.stderr)  # the program's own
        *hits, functions, variables, callers = outcome.stderr.splitlines()
        self.assertEqual(functions, "count: executed 4 times")
        self.assertEqual(variables, "counted: written 4 times")
        self.assertEqual(callers, "libcounting.so`let_count: executed 1 time")
        self.assertEqual(len({hit.split()[2] for hit in hits}), 2)  # threads

    def test_a_name_that_several_files_have_is_told(self):
        def watch(name):
            return cases.tailtrace("watch", name, "--", USES_LIBRARY)
        self.assert_error(watch("_dl_signal_error"), 2, "cannot watch _dl_signal_error",
                          "2 symbols may be meant", "libc.so.6`_dl_signal_error")

    def test_of_an_indirect_function_it_is_the_chosen_one(self):
        outcome = cases.tailtrace("watch", "memcpy", "sum_up_to", "listed", "--", SEVERAL_NAMES)
        self.needs_registers(outcome)
        self.assertEqual(outcome.stderr.splitlines()[-3:],
                         ["memcpy: executed 4 times", "sum_up_to: executed 3 times",
                          "listed: executed 3 times"])
        self.assertRegex(outcome.stderr, r"memcpy executed  at 0x\w+  __memcpy_\w+  ")
        static = os.path.join(cases.BINARY_DIR, "tests/programs/recursion_static")
        self.assert_error(cases.tailtrace("watch", "strlen", "--", static), 2,
                          "cannot watch strlen", "it is chosen as the program starts")

    def test_a_source_line(self):
        with open(SOURCE, encoding="ascii") as file:
            lines = file.read().splitlines()
        store = "counter.c:" + str(lines.index("  letters[8] = 'a';") + 1)
        add, = (f"counter.c:{n}" for n, line in enumerate(lines, 1) if " add(long" in line)
        outcome = self.watch(store, add, "counter:8")
        self.needs_registers(outcome)
        self.assertEqual(outcome.stderr.splitlines()[-3:],
                         [f"{store}: executed 1 time", f"{add}: executed 5 times",
                          "counter:8: written 8 times"])
        self.assert_error(self.watch("counter.c:1"), 2, "cannot watch counter.c:1",
                          "no statement begins at", add)
        self.assert_error(self.watch("other.c:1"), 2, "cannot watch other.c:1",
                          "no debug information has such a file")

    def test_an_address_in_a_file_and_in_a_library(self):
        def place_of(file, name):
            path = os.path.join(cases.BINARY_DIR, "tests/programs", file)
            names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
            return f"{file}+0x{re.search(rf'(?m)^(.+) . {name}$', names).group(1)}"
        places = (place_of("uses_library", "main"), place_of("libcounting.so", "count"),
                  place_of("libcounting.so", "counted") + ":4")
        outcome = cases.tailtrace("watch", *places, "--", USES_LIBRARY)
        self.needs_registers(outcome)
        self.assertEqual(outcome.stderr.splitlines()[-3:],
                         [f"{places[0]}: executed 1 time", f"{places[1]}: executed 4 times",
                          f"{places[2]}: written 4 times"])

    def test_a_library_that_is_loaded_later(self):
        outcome = cases.tailtrace("watch", "main", "libm.so.6`cbrt", "libm.so.6`no_such",
                                  "other.so`cbrt", "--", LOADS_LIBRARY)
        self.needs_registers(outcome)
        self.assertEqual(outcome.returncode, 0)
        self.assertIn("error: cannot watch libm.so.6`no_such\n", outcome.stderr)
        self.assertIn("error: there was no other.so`cbrt\n", outcome.stderr)
        *hits, program, library = outcome.stderr.splitlines()[-5:]
        self.assertEqual(program, "main: executed 1 time")
        self.assertEqual(library, "libm.so.6`cbrt: executed 2 times")
        self.assertEqual(len([hit for hit in hits if re.search("`cbrt executed .*cbrt", hit)]), 2)

    def test_a_library_goes_by_its_links_names_too(self):
        programs = os.path.join(cases.BINARY_DIR, "tests/programs")
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "first.so.1")
            shutil.copy(os.path.join(programs, "first_same.so"), link + ".2.3")
            os.symlink("first.so.1.2.3", link)
            for name in ("first.so.1", "first.so"):
                outcome = cases.tailtrace("watch", f"{name}`plug", "--",
                                          os.path.join(programs, "replaces_library"), link)
                self.needs_registers(outcome)
                self.assertIn(f"{name}`plug: executed 1 time\n", outcome.stderr)

    def test_a_library_that_a_thread_loads_takes_the_last_register(self):
        outcome = cases.tailtrace("watch", "main", "main+1", "main+4", "libm.so.6`cbrt",
                                  "--", LOADS_IN_THREAD)
        self.needs_registers(outcome)
        self.assertIn("libm.so.6`cbrt: executed ", outcome.stderr)
        self.assertNotIn("libm.so.6`cbrt: executed 0", outcome.stderr)

    def test_a_program_that_ends_before_its_libraries_have_names(self):
        outcome = cases.tailtrace("watch", "count", "--", USES_LIBRARY,
                                  env={**os.environ, "ENDS_EARLY": "1"})
        self.assert_error(outcome, 8, "the program ended before its own code began")

    def test_what_cannot_be_watched_is_named(self):
        for words, why in ((["nobody"], f"no symbol table of {os.path.realpath(COUNTER)}"),
                           (["letters"], "it is 32 bytes at"), (["letters:0"], "it is 0 bytes"),
                           (["counter+4:8"], "1, 2, 4 or 8 at a multiple of that"),
                           (["counter+9"], "counter has 8 bytes only"),
                           (["*counter"], "no address behind the *"),
                           (["*0xffffffff81000000"], "no program has such an address"),
                           (["*0x7fffffffffff"], "no program has the address 0x7fffffffffff"),
                           (["add"] * 5, "four debug registers")):
            with self.subTest(words):
                self.assert_error(self.watch(*words), 2, "cannot watch", why)
        self.assert_error(cases.tailtrace("watch", "counter"), 2, "cannot run a program")
        for place, part in (("letters", "letters:8"), ("letters+4:16", "letters+4:4"),
                            ("letters+7:2", "letters+7:1")):
            self.assert_error(self.watch(place), 2, "cannot watch", fix="a part of it: " + part)

    def test_a_program_that_executes_another_one(self):
        again = os.path.join(cases.BINARY_DIR, "tests/programs/executes_itself")
        outcome = cases.tailtrace("watch", "work", "main", "--", again, "path")
        self.needs_registers(outcome)
        self.assertEqual(outcome.stderr.splitlines()[-2:],
                         ["work: executed 1 time", "main: executed 2 times"])
        self.assertEqual(len(re.findall(r"main executed  at \w+  main  ", outcome.stderr)), 2)

    def test_an_older_file_stays_where_nothing_is_watched(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hits")
            with open(path, "w", encoding="utf-8") as file:
                file.write("older")
            self.assert_error(self.watch("--output=" + path, "nobody"), 2, "cannot watch")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "older")
            self.assertEqual(os.listdir(folder), ["hits"])

    def test_a_file_that_cannot_be_written_is_told_before_the_program_runs(self):
        outcome = cases.tailtrace("watch", "--output=/nowhere/hits", "x", "--", "/bin/echo", "ran")
        self.assert_error(outcome, 7, "cannot write /nowhere/hits", "No such file")

    def test_recordings_that_cannot_have_it_say_so(self):
        run = ("run", "--no-debugger", "--watch=counter")
        self.assert_error(cases.tailtrace(*run, "--engine=qemu", "--", COUNTER), 2,
                          "cannot record so", "the hardware engines'")
        self.assert_error(cases.tailtrace(*run, "--engine=pt", "--lossless", "--", COUNTER), 2,
                          "cannot record so", "thread by thread")
        self.assert_error(cases.tailtrace("run", "--no-debugger", "--engine=bts", "--pause-at=add",
                                          "--", COUNTER), 2, "cannot record so", "Intel PT")
        self.assert_error(cases.tailtrace("run", "--watch=counter", "--", COUNTER), 2,
                          "under a debugger", "history of each thread")


if __name__ == "__main__":
    cases.main()
