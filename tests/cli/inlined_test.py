"""Functions that the compiler inlined are places: GDB's breakpoints and addr2line say where."""

import os
import re
import shutil
import subprocess
import unittest

import cases
from recorded import InFolder

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/inlined_often.c")
INLINED = os.path.join(cases.BINARY_DIR, "tests/programs/inlined_often")


class Inlined(InFolder):
    program = INLINED

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_places_of_inlined_functions_are_hit_as_gdbs_breakpoints_are(self):
        session = self.record(self.program)
        for location in ("add", "add_all", "inlined_often.c:6", "twice"):
            with self.subTest(location):
                thread, = self.ask("hits", session, location)["threads"]
                self.assertEqual(thread["count"], self.hits_in_gdb(location, self.program))
                self.assertGreater(thread["count"], 0)
        everywhere, = self.ask("hits", session, "add")["threads"]
        in_file, = self.ask("hits", session, "inlined_often.c:add")["threads"]
        self.assertEqual(in_file, everywhere)
        hit, = self.ask("last", session, "add_all")["threads"][0]["hits"]
        self.assertEqual([frame["function"] for frame in hit["path"]][:2], ["twice", "main"])
        self.assertEqual(hit["inlined"][0]["function"], "add_all")

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_inlined_functions_are_where_gdb_puts_its_breakpoints(self):
        hits = self.ask("hits", self.record(self.program), "add_all")["threads"][0]["hits"]
        base = min(int(hit["address"], 16) for hit in hits)
        text = self.gdb("break add_all", "info breakpoints", program=self.program)
        found = re.findall(r"1\.\d+ .*(0x\w+) in add_all at", text)
        places = sorted(int(place, 16) for place in found)
        self.assertEqual(len(places), 2, text)
        self.assertEqual({int(hit["address"], 16) - base for hit in hits},
                         {place - places[0] for place in places})

    @unittest.skipUnless(shutil.which("addr2line"), "no binutils")
    def test_what_is_inside_of_an_inlined_function_is_what_addr2line_says(self):
        session = self.record(self.program)
        module = os.path.basename(self.program)
        code = self.ask("find", session, f"--in={module}`twice", "--limit=1000")
        items = code["threads"][0]["items"]
        base = min(int(item["address"], 16) for item in items)
        symbols = subprocess.run(["nm", INLINED], capture_output=True, text=True, check=True)
        begin = int(re.search(r"(?m)^(\w+) \w twice$", symbols.stdout)[1], 16)
        inside = self.ask("find", session, "--in=add", "--limit=1000")["threads"][0]["items"]
        found = {int(item["address"], 16) for item in inside}
        for address in {int(item["address"], 16) for item in items}:
            names = subprocess.run(["addr2line", "-f", "-i", "-e", INLINED,
                                    hex(address - base + begin)],
                                   capture_output=True, text=True, check=True).stdout.split("\n")
            self.assertEqual(address in found, "add" in names[::2], hex(address))


class InlinedOfASplitUnit(Inlined):
    """What is inlined is told by a file of its own, as of `-gsplit-dwarf`. The code is the same."""
    program = INLINED + "_split"

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_that_file_is_missed_and_not_waited_for(self):
        program = os.path.join(self.folder, "program")
        subprocess.run(["gcc", "-O1", "-g", "-gsplit-dwarf", "-o", program, SOURCE], check=True)
        for name in os.listdir(self.folder):
            if name.endswith(".dwo"):
                missing = os.path.join(self.folder, name)
        os.remove(missing)
        session = self.record(program)
        # A pipe would be waited for for ever.
        for put_there in (lambda path: None, os.mkfifo):
            put_there(missing)
            outcome = cases.tailtrace("hits", session, "main")
            self.assertIn(f"error: cannot tell the inlined functions of {program}", outcome.stderr)
            self.assertIn(os.path.basename(missing), outcome.stderr)
            self.assertIn("1 hit", outcome.stdout)


if __name__ == "__main__":
    cases.main()
