"""A list of packets takes no more memory the longer it is."""

import json
import os
import subprocess
import tempfile
import unittest

import cases

PSB = bytes([0x02, 0x82] * 8)
TNT = bytes([0x06])
COUNT = 500_000
# As objects in memory so many packets take 800 MB; a sanitizer keeps 256 MB back.
MOST_KB = 400 << 10


class Packets(unittest.TestCase):
    def listed(self, *options):
        """What is printed, and the process's most resident memory in KiB."""
        with tempfile.TemporaryFile() as out:
            with subprocess.Popen([cases.TAILTRACE, "packets", *options, self.trace],
                                  stdin=subprocess.DEVNULL, stdout=out) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            out.seek(0)
            return out.read().decode(), usage.ru_maxrss

    def setUp(self):
        trace = tempfile.NamedTemporaryFile()
        self.addCleanup(trace.close)
        trace.write(PSB + TNT * COUNT)
        trace.flush()
        self.trace = trace.name

    def test_as_a_document(self):
        text, kilobytes = self.listed("--json")
        self.assertLess(kilobytes, MOST_KB)
        document = json.loads(text)
        self.assertEqual(document["schema"], "tailtrace.packets/1")
        self.assertEqual(len(document["packets"]), 1 + COUNT)
        self.assertEqual(document["packets"][-1]["outcomes"], "T")

    def test_as_lines(self):
        text, kilobytes = self.listed("--json=lines")
        self.assertLess(kilobytes, MOST_KB)
        self.assertEqual(text.count("\n"), 1 + COUNT)
        last = json.loads(text.splitlines()[-1])
        self.assertEqual(last["schema"], "tailtrace.packet/1")
        self.assertEqual(last["outcomes"], "T")


if __name__ == "__main__":
    cases.main()
