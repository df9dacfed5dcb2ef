"""A program whose segments share pages of its file, as lld links all: places are where GDB and nm
have them."""

import json
import os
import re
import shutil
import struct
import subprocess
import unittest

import cases
from recorded import InFolder

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/recursion_shared_pages")


def in_file(function):
    symbols = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True)
    return int(re.search(rf"(?m)^(\w+) \w {function}$", symbols.stdout)[1], 16)


class SharedPages(InFolder):
    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_functions_and_lines_are_hit_as_gdbs_breakpoints_are(self):
        session = self.record(PROGRAM)
        for location in ("fibonacci", "depth", "recursion.c:4", "main"):
            with self.subTest(location):
                thread, = self.ask("hits", session, location)["threads"]
                self.assertEqual(thread["count"], self.hits_in_gdb(location, PROGRAM))
                self.assertGreater(thread["count"], 0)

    @unittest.skipUnless(shutil.which("nm"), "no binutils")
    def test_a_saved_recording_says_where_it_was_loaded(self):
        session, saved = self.record(PROGRAM), self.folder + "/saved"
        self.assertEqual(cases.tailtrace("save", session, saved).returncode, 0)
        with open(saved + "/trace.json", encoding="utf-8") as trace:
            modules = json.load(trace)["processes"][0]["modules"]
        loaded, = [one["loadAddress"] for one in modules if one["systemPath"] == PROGRAM]
        hit = self.ask("last", saved, "depth")["threads"][0]["hits"][0]
        self.assertEqual(int(hit["address"], 16), loaded + in_file("depth"))
        self.assertEqual(hit["function"], "depth")

    @unittest.skipUnless(shutil.which("nm"), "no binutils")
    def test_its_blocks_have_their_places_in_the_file(self):
        path = self.folder + "/run.drcov"
        outcome = cases.tailtrace("export", "--format=drcov", "-o", path, self.record(PROGRAM))
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        with open(path, "rb") as file:
            head, _, rest = file.read().partition(b" bbs\n")
        modules = [line for line in head.decode().splitlines() if line.endswith(" " + PROGRAM)]
        self.assertEqual(len(modules), 1)
        number = int(modules[0].split(", ")[0])
        blocks = struct.iter_unpack("<IHH", rest)
        starts = {start for start, _, module in blocks if module == number}
        self.assertIn(in_file("fibonacci"), starts)
        self.assertIn(in_file("depth"), starts)

    def test_a_call_that_ends_the_recording_is_found(self):
        bundle = self.folder + "/bundle"
        outcome = cases.tailtrace("run", "--on-crash=" + bundle, "--on-call=depth", "--", PROGRAM)
        self.assertRegex(self.ask("info", bundle)["recorded"]["cause"], "^function", outcome.stderr)
        newest = self.ask("last", bundle)["threads"][0]["hits"][0]
        self.assertEqual((newest["function"], newest["branch"]), ("main", "call"))


if __name__ == "__main__":
    cases.main()
