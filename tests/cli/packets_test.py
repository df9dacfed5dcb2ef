"""A list of packets takes no more memory the longer it is, or its file."""

import json
import os
import subprocess
import tempfile
import unittest

import cases

PSB = bytes([0x02, 0x82] * 8)
TNT = bytes([0x06])
COUNT = 500_000
# As objects in memory so many packets take 800 MB; a sanitizer keeps 400 MB back.
MOST_MORE_KB = 600 << 10


class Packets(unittest.TestCase):
    def listed(self, packets, *options, hole=0):
        """What is printed, and the process's most resident memory in KiB."""
        with tempfile.NamedTemporaryFile() as trace, tempfile.TemporaryFile() as out:
            trace.seek(hole)
            trace.write(PSB + packets)
            trace.flush()
            with subprocess.Popen([cases.TAILTRACE, "packets", *options, trace.name],
                                  stdin=subprocess.DEVNULL, stdout=out) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            out.seek(0)
            return out.read().decode(), usage.ru_maxrss

    def long_list(self, *options):
        """What is printed of many packets, for which no more memory is taken than for one."""
        _, least_kb = self.listed(TNT, *options)
        text, kilobytes = self.listed(TNT * COUNT, *options)
        self.assertLess(kilobytes, least_kb + MOST_MORE_KB)
        return text

    def test_as_a_document(self):
        document = json.loads(self.long_list("--json"))
        self.assertEqual(document["schema"], "tailtrace.packets/1")
        self.assertEqual(len(document["packets"]), 1 + COUNT)
        self.assertEqual(document["packets"][-1]["outcomes"], "T")

    def test_as_lines(self):
        text = self.long_list("--json=lines")
        self.assertEqual(text.count("\n"), 1 + COUNT)
        last = json.loads(text.splitlines()[-1])
        self.assertEqual(last["schema"], "tailtrace.packet/1")
        self.assertEqual(last["outcomes"], "T")

    def test_of_a_file_with_a_hole(self):
        hole = 768 << 20
        text, kilobytes = self.listed(TNT, hole=hole)
        lines = [f"{hole:016x}  PSB", f"{hole + 16:016x}  TNT        T"]
        self.assertEqual(text.splitlines()[1:], lines)
        self.assertLess(kilobytes, MOST_MORE_KB)

    def test_of_a_pipe(self):
        for words in (["packets"], ["decode", "--print=events", "--code=/bin/true@0", "--pt"]):
            for packets in (PSB + TNT * 100_000, b""):
                with tempfile.NamedTemporaryFile() as trace:
                    trace.write(packets)
                    trace.flush()
                    named = cases.tailtrace(*words, trace.name)
                piped = subprocess.run([cases.TAILTRACE, *words, "/dev/stdin"], input=packets,
                                       capture_output=True, check=False)
                self.assertEqual(piped.stdout.decode(), named.stdout)
                self.assertEqual(piped.returncode, named.returncode, piped.stderr)

    def test_of_code_in_a_pipe(self):
        at = (0x1000).to_bytes(6, "little")
        packets = PSB + bytes([0x99, 0x01, 0x7d, *at, 0x02, 0x23, 0x2d, 0x01, 0x10, 0x01])
        with tempfile.NamedTemporaryFile() as trace:
            trace.write(packets)
            trace.flush()
            words = [cases.TAILTRACE, "decode", "--pt", trace.name, "--code=/dev/stdin@0x1000"]
            executed = f"{0x1000:016x}\n" + f"{0x1001:016x}\n" * 2 + "[disabled]\n"
            for code, expected in ((b"\x90\xc3", (0, executed, "")),
                                   (b"", (5, "", "error: cannot read /dev/stdin\n"
                                                 "  why:  it is empty\n"))):
                piped = subprocess.run(words, input=code, capture_output=True, check=False)
                self.assertEqual((piped.returncode, piped.stdout.decode(), piped.stderr.decode()),
                                 expected)


if __name__ == "__main__":
    cases.main()
