"""What `tailtrace export` writes for programs that read bytes and counts, read back here or by
them; questions_test.py has the forms that show calls."""

import json
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import cases

# By this name it does what it is for.
PERF2BOLT = shutil.which("perf2bolt", path="/usr/lib/llvm-16/bin:" + os.environ["PATH"])
PROFGEN = shutil.which("llvm-profgen", path="/usr/lib/llvm-14/bin")  # Debian 12's
XMLLINT = shutil.which("xmllint")
PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")


def definition_in_gdb(name):
    """The definition of a kind of document that GDB's program carries; None when it has none."""
    gdb = shutil.which("gdb")
    if gdb is None:
        return None
    with open(gdb, "rb") as file:
        program = file.read()
    found = re.search(rb"<!ELEMENT " + name.encode() + rb"\s", program)
    if found is None:
        return None
    begin = program.rindex(b"\0", 0, found.start()) + 1
    return program[begin:program.index(b"\0", found.start())]


class Export(cases.CommandCase):
    @classmethod
    def setUpClass(cls):
        cases.needs_engine(cls("export"), "qemu")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.session = cls.record(PROGRAM, "3", name="session")
        cls.instructions = cls.executed()

    @classmethod
    def record(cls, *command, name):
        session = os.path.join(cls.folder, name)
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + session, "--ring=1048576",
                                  "--", *command)
        assert outcome.returncode == 0, outcome.stderr
        return session

    def export(self, form, *words):
        outcome = cases.tailtrace("export", "--format=" + form, self.session, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def entry_of_leaf(self):
        outcome = cases.tailtrace("hits", "--json", self.session, "leaf")
        return int(json.loads(outcome.stdout)["threads"][0]["hits"][-1]["address"], 16)

    @classmethod
    def executed(cls):
        """Every instruction as (address, size), in order."""
        outcome = cases.tailtrace("history", "--json=lines", cls.session, "all")
        items = [json.loads(line) for line in outcome.stdout.splitlines()[1:]]
        return [(int(item["address"], 16), len(item["bytes"]) // 2) for item in items
                if "bytes" in item]

    def test_a_full_disk_leaves_no_half_of_a_file(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        for form in ("folded", "html", "perfetto", "perf-data", "npy"):
            with self.subTest(form):
                path = os.path.join(self.folder, "cut")
                outcome = cases.tailtrace("export", "--format=" + form, self.session, "-o", path,
                                          preexec_fn=small_files, restore_signals=False)
                self.assert_error(outcome, 7, "cannot write " + path, "File too large",
                                  "ulimit -f")
                self.assertFalse([name for name in os.listdir(self.folder) if "cut" in name])
                with open("/dev/full", "wb") as full:
                    outcome = subprocess.run(
                        [cases.TAILTRACE, "export", "--format=" + form, self.session], check=False,
                        stdout=full, stderr=subprocess.PIPE, text=True, timeout=cases.HANG_S)
                self.assertEqual(outcome.returncode, 7)
                self.assertIn("No space left on device", outcome.stderr)

    def test_drcov_blocks_are_the_bytes_that_were_executed(self):
        path = os.path.join(self.folder, "run.drcov")
        self.assertEqual(self.export("drcov", "-o", path), "")
        with open(path, "rb") as file:
            head, _, rest = file.read().partition(b" bbs\n")
        lines = head.decode().splitlines()
        self.assertEqual(lines[:2], ["DRCOV VERSION: 2", "DRCOV FLAVOR: drcov"])
        bases = []
        for number, line in enumerate(lines[4:-1]):
            row, base, end, _, name = line.split(", ")
            self.assertEqual(int(row), number)
            self.assertLess(int(base, 16), int(end, 16))
            self.assertTrue(name.startswith("/"), line)
            bases.append(int(base, 16))
        self.assertEqual(lines[2], f"Module Table: version 2, count {len(bases)}")
        count = int(lines[-1].removeprefix("BB Table: "))
        blocks = list(struct.iter_unpack("<IHH", rest))
        self.assertEqual(len(blocks), count)
        covered = {bases[module] + start + i for start, size, module in blocks
                   for i in range(size)}
        instructions = set(self.instructions)
        self.assertEqual(covered, {at + i for at, size in instructions for i in range(size)})
        # A block is entered at its first byte alone, or at that of a block inside of it.
        starts = {bases[module] + start for start, _, module in blocks}
        self.assertLessEqual(starts, {at for at, _ in instructions})

    def test_a_bolt_profile_counts_what_was_executed(self):
        executed = self.instructions
        symbols = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True)
        in_file = {name: int(at, 16) for at, name in
                   re.findall(r"(?m)^([0-9a-f]+) [tT] (\w+)$", symbols.stdout)}
        moved = self.entry_of_leaf() - in_file["leaf"]
        into, runs = {}, {}
        for line in self.export("bolt").splitlines():
            kind, *words = line.split()
            first, second = (int(word, 16) for word in words[:2])
            if kind == "B":
                into[second] = into.get(second, 0) + int(words[2])
                self.assertEqual(words[3], "0")
            else:
                self.assertEqual(kind, "F")
                runs[first, second] = int(words[2])
        # By hand: leaf is entered 60 times, and each of its instructions is run so often as is
        # listed.
        self.assertEqual(into[in_file["leaf"]], 60)
        self.assertEqual(into[in_file["round_begin"]], 3)
        for name in ("leaf", "round_begin", "round_work"):
            at = in_file[name]
            self.assertEqual(sum(count for (first, last), count in runs.items()
                                 if first <= at <= last),
                             sum(address == at + moved for address, _ in executed), name)

    @unittest.skipUnless(PERF2BOLT, "no bolt-16")
    def test_bolt_reads_the_profile(self):
        program, profile, data = (os.path.join(self.folder, name)
                                  for name in ("program", "profile", "fdata"))
        with open(profile, "w", encoding="utf-8") as file:
            file.write(self.export("bolt"))
        shutil.copy(PROGRAM, program)
        said = subprocess.run([PERF2BOLT, "-pa", "-p", profile, "-o", data, program],
                              capture_output=True, text=True, timeout=cases.HANG_S, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        with open(data, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"(?m)^1 round_work \w+ 1 leaf 0 0 \d+$")

    def test_numpy_loads_the_records(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no python3-numpy")
        path = os.path.join(self.folder, "records.npy")
        self.assertEqual(self.export("npy", "-o", path), "")
        records = numpy.load(path, mmap_mode="r")
        info, = json.loads(cases.tailtrace("info", "--json", self.session).stdout)["threads"]
        self.assertEqual(len(records), info["records"])
        self.assertEqual(int(records["insns"].sum()), info["instructions"])
        self.assertEqual(records.dtype.itemsize, 32)
        self.assertEqual(int((records["to"] == self.entry_of_leaf()).sum()), 60)

    def test_arrow_has_the_records_of_all_threads(self):
        try:
            import arrow_file
            import numpy
        except ImportError:
            self.skipTest("no python3-numpy")
        long, path = self.record(PROGRAM, "2000", name="long"), os.path.join(self.folder, "long")
        for form in ("arrow", "npy"):
            outcome = cases.tailtrace("export", "--format=" + form, "-o", f"{path}.{form}", long)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        batches, records = arrow_file.read(path + ".arrow"), numpy.load(path + ".npy")
        self.assertGreater(len(batches), 1)
        for name in records.dtype.names:
            column = numpy.concatenate([batch[name] for batch in batches])
            self.assertEqual(column.dtype, records.dtype[name])
            self.assertTrue((column == records[name]).all(), name)
        # Several threads.
        session = self.record(os.path.join(cases.BINARY_DIR, "tests/programs/three_workers"),
                              name="workers")
        path = os.path.join(self.folder, "workers.arrow")
        outcome = cases.tailtrace("export", "--format=arrow", "-o", path, session)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        counts = {}
        for batch in arrow_file.read(path):
            thread, = set(zip(batch["pid"].tolist(), batch["tid"].tolist()))
            counts[thread] = counts.get(thread, 0) + len(batch["to"])
        told = json.loads(cases.tailtrace("info", "--json", session).stdout)["threads"]
        self.assertEqual(counts, {(t["pid"], t["tid"]): t["records"] for t in told})

    def test_btrace_is_the_document_that_gdb_defines(self):
        document = xml.etree.ElementTree.fromstring(self.export("btrace"))
        self.assertEqual((document.tag, document.attrib), ("btrace", {"version": "1.0"}))
        blocks = [(int(block.get("begin"), 16), int(block.get("end"), 16)) for block in document]
        self.assertEqual({block.tag for block in document}, {"block"})
        executed = self.instructions
        # Newest first; instructions in order fill the blocks one after the other.
        blocks.reverse()
        at = 0
        for begin, end in blocks[:-1]:
            self.assertEqual(executed[at][0], begin)
            while executed[at][0] != end:
                self.assertLess(executed[at][0], end)
                at += 1
            at += 1
        # The last one ends with the instruction where the thread stood, which it may have begun.
        left = executed[at:]
        self.assertEqual(left[0][0], blocks[-1][0])
        self.assertTrue(all(address <= blocks[-1][1] for address, _ in left), left)

    def test_btrace_is_valid_by_the_definition_that_gdb_holds(self):
        definition = definition_in_gdb("btrace")
        if not definition or not XMLLINT:
            self.skipTest("no xmllint, or no definition in gdb")
        document, dtd = (os.path.join(self.folder, name) for name in ("btrace.xml", "btrace.dtd"))
        with open(dtd, "wb") as file:
            file.write(definition)
        self.assertEqual(self.export("btrace", "-o", document), "")
        validate = [XMLLINT, "--nonet", "--noout", "--dtdvalid", dtd]
        said = subprocess.run([*validate, document], capture_output=True, text=True,
                              timeout=cases.HANG_S, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        # It would say so.
        with open(document, encoding="utf-8") as file:
            wrong = file.read().replace("<block begin", "<block start", 1)
        with open(document, "w", encoding="utf-8") as file:
            file.write(wrong)
        said = subprocess.run([*validate, document], capture_output=True, text=True,
                              timeout=cases.HANG_S, check=False)
        self.assertNotEqual(said.returncode, 0)

    def profile(self):
        """The lists of an autofdo profile, by what parts their numbers."""
        lines = iter(self.export("autofdo").splitlines())
        lists = []
        for parting in "-", None, "->":
            found = {}
            for _ in range(int(next(lines))):
                place, count = next(lines).split(":")
                found[tuple(int(word, 16) for word in place.split(parting))] = int(count)
            lists.append(found)
        self.assertEqual(list(lines), [])
        return lists

    def test_an_autofdo_profile_has_the_counts_of_bolts(self):
        runs, samples, branches = self.profile()
        self.assertEqual(samples, {})
        counts = {"B": {}, "F": {}}
        for line in self.export("bolt").splitlines():
            kind, first, second, count, *_ = line.split()
            counts[kind][int(first, 16), int(second, 16)] = int(count)
        self.assertEqual(branches, counts["B"])
        self.assertEqual(runs, counts["F"])

    @unittest.skipUnless(PROFGEN, "no llvm-profgen")
    def test_llvm_makes_a_profile_for_its_compiler_of_it(self):
        counts, profile = (os.path.join(self.folder, name) for name in ("counts", "profile"))
        # LLVM's own has the same lists but for the empty one, of offsets in the code's segment.
        segments = subprocess.run(["readelf", "-lW", PROGRAM], capture_output=True, text=True,
                                  check=True).stdout
        moved = int(re.search(r"(?m)^  LOAD +\S+ (\S+) .* R E ", segments)[1], 16)
        runs, _, branches = self.profile()
        with open(counts, "w", encoding="utf-8") as file:
            for found, parting in (runs, "-"), (branches, "->"):
                file.write(f"{len(found)}\n")
                for (first, second), count in found.items():
                    file.write(f"{first - moved:x}{parting}{second - moved:x}:{count}\n")
        profdata = os.path.join(os.path.dirname(PROFGEN), "llvm-profdata")
        for command in ([PROFGEN, "--unsymbolized-profile=" + counts, "--binary=" + PROGRAM,
                         "--output=" + profile],
                        [profdata, "merge", "-sample", "-text", profile, "-o", "-"]):
            said = subprocess.run(command, capture_output=True, text=True, timeout=cases.HANG_S,
                                  check=False)
            self.assertEqual(said.returncode, 0, said.stderr)
        # By hand, as above: each function with how often it was entered, and by whom.
        self.assertRegex(said.stdout, r"(?m)^leaf:\d+:60$")
        self.assertRegex(said.stdout, r"(?m)^round_begin:\d+:3$")
        calls = re.findall(r" leaf:(\d+)", said.stdout)
        self.assertEqual(sum(map(int, calls)), 60, said.stdout)

    def test_forms_that_hold_one_thread_say_so(self):
        session = self.record(os.path.join(cases.BINARY_DIR, "tests/programs/three_workers"),
                              name="several")
        out = os.path.join(self.folder, "out")
        for form in ("npy", "btrace"):
            for words in ("-o", out), ():
                outcome = cases.tailtrace("export", "--format=" + form, *words, session)
                self.assert_error(outcome, 2, f"several threads as {form}", "it holds one",
                                  "--thread=")
                self.assertFalse(os.path.exists(out))


cases.main()
