"""Questions to a recording, against programs that answer them in another way: GDB's breakpoints
count how often a place is reached, gcov counts lines, GDB's backtrace names callers."""

import glob
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import cases
from recorded import DETOURS, PROGRAM, ROUNDS, SIGNALS, SOURCE, InFolder

try:
    import perfetto
except ImportError:
    perfetto = None

VERBS = (["last", "main"], ["hits", "main"], ["find"], ["stats"], ["coverage"])


class Questions(InFolder):
    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_hits_are_as_many_as_those_of_gdbs_breakpoints(self):
        session = self.record()
        for location in ("leaf", "round_work", "round_begin", "rounds.c:7", "rounds.c:9",
                         "rounds.c:12", "rounds.c:22", "rounds.c:25", "rounds.c:leaf"):
            with self.subTest(location):
                thread, = self.ask("hits", session, location)["threads"]
                self.assertEqual(thread["count"], self.hits_in_gdb(location))
                self.assertGreater(thread["count"], 0)

    def test_an_address_is_hit_however_it_is_written(self):
        session = self.record()
        thread, = self.ask("hits", session, "leaf")["threads"]
        address = thread["hits"][-1]["address"]
        symbols = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True)
        in_file = re.search(r"(?m)^0*([0-9a-f]+) \w leaf$", symbols.stdout)[1]
        for location in ("*" + address, address, "leaf+0x0", "rounds+0x" + in_file,
                         PROGRAM + "+0x" + in_file, "rounds`leaf"):
            with self.subTest(location):
                self.assertEqual(self.ask("hits", session, location)["threads"], [thread])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_the_last_hit_has_the_callers_that_gdb_saw(self):
        cases.needs_engine(self, "step")
        session = self.record()
        count = self.ask("hits", session, "leaf")["threads"][0]["count"]
        text = self.gdb("break leaf", f"ignore 1 {count - 1}", "run", "backtrace")
        frames = re.findall(r"(?m)^#\d+ .*?(\w+) \(.*\) at \S*rounds.c:(\d+)$", text)
        hit, = self.ask("last", session, "leaf")["threads"][0]["hits"]
        ours = [(frame["function"], str(frame["line"])) for frame in hit["path"]
                if frame.get("file", "").endswith("rounds.c")]
        self.assertEqual(len(ours), 3)
        self.assertEqual(ours, frames)
        # So has the item itself, and the newest hit that is not after it.
        for words in ([f"--at={hit['number']}"], [f"--at={hit['position']}", "leaf"]):
            self.assertEqual(self.ask("last", session, *words)["threads"][0]["hits"], [hit])
        one_less = self.ask("last", session, f"--at={hit['number'] - 1}", "leaf")
        self.assertLess(one_less["threads"][0]["hits"][0]["number"], hit["number"])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_what_a_handler_interrupted_is_below_it_as_in_gdb(self):
        cases.needs_engine(self, "step")
        for way, handler in (("1", "jump_out"), ("2", "go_elsewhere"), ("3", "note")):
            with self.subTest(handler):
                text = self.gdb("handle SIGUSR1 nostop", "break " + handler, "run",
                                *(["continue"] if way != "3" else []), "backtrace",
                                program=DETOURS, argument=way)
                seen = re.findall(r"(?m)^#\d+ .*?(\w+) \([^()]*\) at .*/detours.cpp:(\d+)$", text)
                self.assertGreater(len(seen), 2, text)
                session = self.record(DETOURS, way, name=handler)
                thread, = self.ask("last", session, handler)["threads"]
                path = thread["hits"][0]["path"]
                ours = [(re.search(r"(\w+)(?:\(|$)", frame["function"])[1], str(frame["line"]))
                        for frame in path if frame.get("file", "").endswith("/detours.cpp")
                        and "tail_called" not in frame]
                self.assertEqual(ours, seen)
                interrupted, = (frame for frame in path if "event" in frame)
                self.assertEqual((interrupted["event"], interrupted["code"]),
                                 ("signal", 10 if way == "3" else 11))

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_callers_behind_handlers_that_came_back_are_those_that_gdb_saw(self):
        cases.needs_engine(self, "step")
        text = self.gdb("handle all nostop noprint", "rbreak signals.c:.", "run",
                        *["backtrace", "continue"] * 30, program=SIGNALS)
        seen = {}
        for stop in re.split(r"(?m)^(?=#0 )", text)[1:]:
            path = re.findall(r"(?m)^#\d+ .*?(\w+) \(.*\) at \S*/signals.c:\d+$", stop)
            if path not in seen.setdefault(path[0], []):
                seen[path[0]].append(path)
        session = self.record(SIGNALS)
        self.assertGreater(len(seen), 6)
        for function, paths in seen.items():
            with self.subTest(function):
                thread, = self.ask("last", session, "--limit=100", function)["threads"]
                ours = []
                for hit in thread["hits"]:
                    path = [frame["function"] for frame in hit["path"]
                            if frame.get("file", "").endswith("/signals.c")]
                    # GDB takes the program's own breakpoint for one of its own.
                    if path not in ours and path != ["count", "jump_away", "main"]:
                        ours.append(path)
                self.assertEqual(ours, paths)

    def test_the_callers_of_the_newest_item_need_no_place(self):
        session = self.record()
        thread, = self.ask("last", session)["threads"]
        self.assertEqual([hit["position"] for hit in thread["hits"]], [-1])
        beyond = thread["size"] + 1
        self.assert_error(cases.tailtrace("last", f"--at={beyond}", session), 1,
                          f"there is no item {beyond}")

    def test_lines_that_begin_at_one_instruction_are_all_covered(self):
        program = os.path.join(os.path.dirname(PROGRAM), "inlined_often")
        files = self.ask("coverage", self.record(program))["files"]
        ours, = (file for file in files if file["file"].endswith("/inlined_often.c"))
        times = {line["line"]: line["times"] for line in ours["lines"]}
        with open(ours["file"]) as source:
            calls = [number for number, line in enumerate(source, 1)
                     if line.startswith("  add_all(") or line.startswith("  add(")]
        self.assertEqual([times[line] for line in calls], [1, 1, 1])
        self.assertNotIn(0, times.values())

    @unittest.skipUnless(shutil.which("gcov") and shutil.which("gcc"), "no gcov")
    def test_coverage_is_what_gcov_counts(self):
        shutil.copy(SOURCE, self.folder)
        for arguments in (["-o", "plain"], ["--coverage", "-o", "counting"]):
            subprocess.run(["gcc", "-g", "-O0", "rounds.c", *arguments], cwd=self.folder,
                           check=True)
        subprocess.run(["./counting", ROUNDS], cwd=self.folder, check=True, capture_output=True)
        report = subprocess.run(["gcov", "--json-format", "--stdout", "counting-rounds.gcda"],
                                cwd=self.folder, check=True, capture_output=True, text=True)
        counted = {line["line_number"]: line["count"]
                   for line in json.loads(report.stdout)["files"][0]["lines"]}
        session = self.record(os.path.join(self.folder, "plain"))
        files = self.ask("coverage", session)["files"]
        ours, = (file for file in files if file["file"].endswith("/rounds.c"))
        times = {line["line"]: line["times"] for line in ours["lines"]}
        self.assertGreater(len(counted), 10)
        self.assertEqual({line: times.get(line) for line in counted}, counted)

    def test_coverage_as_lcov_has_the_same_counts(self):
        session = self.record()
        files = self.ask("coverage", session)["files"]
        ours, = (file for file in files if file["file"].endswith("/rounds.c"))
        outcome = cases.tailtrace("coverage", "--lcov", "--file=rounds.c", session)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        lines = outcome.stdout.splitlines()
        self.assertEqual(lines[0], "TN:tailtrace")
        self.assertEqual(lines[-1], "end_of_record")
        self.assertEqual([f"DA:{line['line']},{line['times']}" for line in ours["lines"]],
                         [line for line in lines if line.startswith("DA:")])
        self.assertIn(f"LH:{ours['lines_executed']}", lines)
        self.assertIn("FNDA:60,leaf", lines)

    @unittest.skipUnless(shutil.which("genhtml"), "no genhtml")
    def test_genhtml_reads_the_tracefile(self):
        outcome = cases.tailtrace("coverage", "--lcov", self.record())
        path = os.path.join(self.folder, "coverage.info")
        with open(path, "w", encoding="utf-8") as file:
            file.write(outcome.stdout)
        subprocess.run(["genhtml", "--branch-coverage", "-o", self.folder + "/html", path],
                       check=True, capture_output=True, timeout=cases.HANG_S)
        self.assertTrue(os.path.exists(self.folder + "/html/index.html"))

    def test_find_and_stats_agree(self):
        session = self.record()
        thread, = self.ask("stats", session)["threads"]
        for kind, count in thread["transfers"].items():
            kind = {"conditional": "taken"}.get(kind, kind)
            found = cases.tailtrace("find", "--json=lines", "--limit=1000000", "--kind=" + kind,
                                    session).stdout.splitlines()[1:]
            with self.subTest(kind):
                self.assertGreaterEqual(len(found), count)  # also calls of the next instruction
                if kind in ("taken", "return"):
                    self.assertEqual(len(found), count)

    def test_no_is_an_answer_with_status_1(self):
        session = self.record()
        for verb, words in (("hits", ["no_such_function"]), ("last", ["rounds.c:1000"]),
                            ("find", ["--kind=gap"]), ("coverage", ["--file=none.c"])):
            outcome = cases.tailtrace(verb, session, *words)
            self.assertEqual(outcome.returncode, 1, outcome.stderr)
            self.ask(verb, session, *words, status=1)
        self.assertEqual(cases.tailtrace("find", session, "--kind=gap").stdout,
                         "nothing was found in what is held\n")

    def test_what_cannot_be_read_is_an_error(self):
        session = self.record()
        self.assert_error(cases.tailtrace("hits", session, "file.c:"), 2, "location `file.c:`",
                          "behind the colon", "FILE:LINE")
        self.assert_error(cases.tailtrace("last", session, "12"), 2, "location `12`")
        self.assert_error(cases.tailtrace("find", "--kind=odd", session), 2, "`odd` is no kind",
                          "not-taken")
        self.assert_error(cases.tailtrace("find", "--in=*x", session), 2, "location `*x`")
        self.assert_error(cases.tailtrace("hits", "--range=x", session, "main"), 2, "range `x`")
        for verb, *words in VERBS:
            none = os.path.join(self.folder, "none")
            self.assert_error(cases.tailtrace(verb, none, *words), 7, none, "No such file")
            self.assert_error(cases.tailtrace(verb, "--thread=1", session, *words), 2,
                              "no thread 1")


class PageReader(html.parser.HTMLParser):
    """The data of a page, and what it would load."""

    def __init__(self, text):
        super().__init__()
        self.data, self.loaded, self.inside = "", [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.loaded += [(tag, name) for name, _ in attrs if name in ("src", "href")]
        self.inside = ("id", "data") in attrs

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


class Export(InFolder):
    """What other programs are given, read back."""

    def export(self, form, session, *words):
        outcome = cases.tailtrace("export", "--format=" + form, session, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def test_folded_stacks_are_those_of_the_source_and_add_up(self):
        session = self.record()
        stacks = {}
        for line in self.export("folded", session).splitlines():
            stack, count = line.rsplit(" ", 1)
            self.assertNotIn(stack, stacks)
            stacks[stack] = int(count)
        thread, = self.ask("stats", session)["threads"]
        self.assertEqual(sum(stacks.values()), thread["instructions"])
        inside = {}
        for stack, count in stacks.items():
            names = stack.split(";")
            if "main" in names:
                inside[";".join(names[names.index("main"):])] = count
        by_name = {one["function"]: one["instructions"] for one in
                   self.ask("stats", session, "--limit=1000000")["threads"][0]["functions"]
                   if "function" in one}
        for stack in ("main", "main;round_work", "main;round_work;leaf", "main;round_begin"):
            self.assertEqual(inside[stack], by_name[stack.split(";")[-1]], stack)

    def test_the_timeline_is_json_whose_slices_lie_in_each_other(self):
        document = json.loads(self.export("chrome", self.record()))
        self.assertIn("instructions", document["otherData"]["clock"])
        slices = [one for one in document["traceEvents"] if one["ph"] == "X"]
        names = [one["name"] for one in slices]
        self.assertEqual((names.count("leaf"), names.count("round_work"), names.count("main")),
                         (60, 3, 1))
        inner = [one for one in slices if one["name"] in ("leaf", "round_work", "round_begin")]
        main, = (one for one in slices if one["name"] == "main")
        for one in inner:
            self.assertGreaterEqual(one["ts"], main["ts"])
            self.assertLessEqual(one["ts"] + one["dur"], main["ts"] + main["dur"])
        # As a viewer draws them: two slices are apart, or one is in the other.
        ends = []
        for one in sorted(slices, key=lambda s: (s["ts"], -s["dur"])):
            while ends and ends[-1] <= one["ts"]:
                ends.pop()
            if ends:
                self.assertLessEqual(one["ts"] + one["dur"], ends[-1])
            ends.append(one["ts"] + one["dur"])

    @unittest.skipUnless(perfetto, "no python3-protobuf")
    def test_perfetto_reads_the_same_calls(self):
        session = self.record()
        slices = [(one["name"], one["ts"], one["ts"] + one["dur"])
                  for one in json.loads(self.export("chrome", session))["traceEvents"]
                  if one["ph"] == "X"]
        path = os.path.join(self.folder, "calls.pftrace")
        self.assertEqual(self.export("perfetto", session, "-o", path), "")
        with open(path, "rb") as file:
            trace = perfetto.Trace.FromString(file.read())
        found, tracks = perfetto.slices(trace)
        self.assertCountEqual(found, slices)
        (process, thread) = tracks
        self.assertIn("1 executed instruction", process.process.process_name)
        self.assertEqual(thread.parent_uuid, process.uuid)
        self.assertEqual(thread.thread.pid, process.process.pid)
        clocks = {clock.clock_id: clock for clock in trace.packet[0].clock_snapshot.clocks}
        default = trace.packet[0].trace_packet_defaults.timestamp_clock_id
        self.assertEqual(clocks[default].unit_multiplier_ns, 1000)

    def page(self, session):
        path = os.path.join(self.folder, "calls.html")
        self.assertEqual(self.export("html", session, "-o", path), "")
        return path

    def test_the_page_has_the_same_calls_and_loads_nothing(self):
        session = self.record()
        slices = [(one["name"], one["ts"], one["ts"] + one["dur"] - 1)
                  for one in json.loads(self.export("chrome", session))["traceEvents"]
                  if one["ph"] == "X"]
        with open(self.page(session), encoding="utf-8") as file:
            page = PageReader(file.read())
        self.assertEqual(page.loaded, [])
        data = json.loads(page.data)
        thread, = data["threads"]
        calls = thread["calls"]
        self.assertCountEqual([(data["names"][calls[i + 3]], calls[i], calls[i + 1])
                               for i in range(0, len(calls), 5)], slices)
        rounds = [(data["names"][name], data["names"][exit] if exit >= 0 else None)
                  for name, exit in zip(thread["loops"][3::5], thread["loops"][4::5])
                  if "round" in data["names"][name]]
        # It is left where it asks whether it goes on.
        self.assertEqual(set(rounds), {("rounds.c:13  round_work", "rounds.c:13  round_work")})

    @unittest.skipUnless(shutil.which("chromium"), "no chromium")
    def test_a_browser_shows_the_page_and_finds_calls(self):
        page = self.page(self.record())
        shown = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
             "--user-data-dir=" + os.path.join(self.folder, "profile"),
             f"file://{page}#find=leaf"], capture_output=True, text=True, timeout=cases.HANG_S,
            check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        status = re.search(r'<output id="status">([^<]*)</output>', shown.stdout)[1]
        self.assertRegex(status, r"[\d,]+ calls, \d+ loops; .*; 60 found")
        chosen = re.search(r'<p id="chosen">([^<]*)</p>', shown.stdout)[1]
        self.assertRegex(chosen, r"^leaf  \[-\d+,-\d+\]  \d+ instructions")

    @unittest.skipUnless(shutil.which("genhtml"), "no lcov")
    def test_genhtml_reads_the_coverage(self):
        outcome = cases.tailtrace("coverage", "--lcov", self.record())
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        tracefile = os.path.join(self.folder, "coverage.info")
        with open(tracefile, "w", encoding="utf-8") as file:
            file.write(outcome.stdout)
        pages = os.path.join(self.folder, "pages")
        said = subprocess.run(["genhtml", "--branch-coverage", "--ignore-errors", "source", "-o",
                               pages, tracefile], capture_output=True, text=True,
                              timeout=cases.HANG_S, check=False)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertRegex(said.stdout, r"functions\.*: \d")
        self.assertTrue(glob.glob(pages + "/**/rounds.c.gcov.html", recursive=True))

    def test_a_file_is_new_and_its_users_only(self):
        session = self.record()
        path = os.path.join(self.folder, "calls.json")
        text = self.export("chrome", session)
        self.assertEqual(self.export("chrome", session, "-o", path), "")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
            self.assertEqual(os.fstat(file.fileno()).st_mode & 0o777, 0o600)
        outcome = cases.tailtrace("export", "--format=chrome", session, "-o", path)
        self.assert_error(outcome, 2, path, "something is there already", "another name")
        outcome = cases.tailtrace("export", "--format=svg", session)
        self.assert_error(outcome, 2, "arguments of tailtrace export", "svg")


class LldbBundles(cases.CommandCase):
    """A bundle as LLDB saves it, written here byte by byte."""

    CODE_AT = 0x1000
    # 1000 nop | 1001 jz 1005 | 1003 jmp 1008 | 1005 nops | 1008 call 1010 | 100d ret | 1010 nop ret
    CODE = bytes.fromhex("907402eb03909090e803000000c3060690c3")
    EXECUTED = ["0x1000", "0x1001", "0x1003", "0x1008", "0x1010", "0x1011"]

    def write(self, folder):
        offset = 64 + 56
        elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", 2, 62, 1, self.CODE_AT, 64, 0, 0, 64, 56, 1, 64, 0, 0)
        size = len(self.CODE)
        elf += struct.pack("<IIQQQQQQ", 1, 5, offset, self.CODE_AT, self.CODE_AT, size, size, 1)
        psb = b"\x02\x82" * 8 + b"\x99\x01" + b"\x02\x23"  # PSB, MODE.Exec 64 bits, PSBEND
        enabled, target, here = (bytes([header]) + struct.pack("<Q", at)[:6] for header, at in
                                 ((0x71, 0x1000), (0x6d, 0x100d), (0x7d, 0x100d)))
        trace = psb + enabled + b"\x04" + target + here + b"\x01"  # TNT: not taken; TIP.PGD
        document = {
            "type": "intel-pt",
            "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 79, "stepping": 1},
            "processes": [{
                "pid": 42, "triple": "x86_64-*-linux",
                "threads": [{"tid": 43, "iptTrace": "43.trace"}],
                "modules": [{"file": "program", "systemPath": "program",
                             "loadAddress": self.CODE_AT}]}]}
        for name, content in (("program", elf + self.CODE), ("43.trace", trace),
                              ("trace.json", json.dumps(document).encode())):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)

    def test_are_read_like_any_recording(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder)
            shutil.copy(folder + "/trace.json", folder + "/another_name.json")
            for path in (folder, folder + "/trace.json", folder + "/another_name.json"):
                outcome = cases.tailtrace("history", "--json", path)
                self.assertEqual(outcome.returncode, 0, outcome.stderr)
                items = json.loads(outcome.stdout)["items"]
                self.assertEqual([item["address"] for item in items], self.EXECUTED)
            outcome = cases.tailtrace("hits", "--json", folder, "program+0x1010")
            thread, = json.loads(outcome.stdout)["threads"]
            self.assertEqual((thread["tid"], thread["count"]), (43, 1))
            os.unlink(folder + "/43.trace")
            self.assert_error(cases.tailtrace("stats", folder), 7, "43.trace", "No such file")


if __name__ == "__main__":
    cases.main()
