"""The processors' traces of a bundle are decoded with the code of whoever ran there.

Two processes have other code at the same address, and take turns on one processor.
"""

import json
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

import cases

BASE, START = 0x400000, 0x400078
# Each: nop, then as many more, and a jump to itself that the trace ends at.
CODES = {10: b"\x90\xeb\xfe", 20: b"\x90\x90\x90\xeb\xfe"}
# Of process, thread, and when: the first thread comes again.
TURNS = [(10, 11, 1000), (20, 21, 3000), (10, 12, 5000), (10, 11, 7000)]


def program(code):
    """An ELF file of one executable segment."""
    size = START - BASE + len(code)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, START, 64, 0, 0, 64,
                       56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 4096) + code


def turn(pid, time):
    """From PSB+ without an address to the end of the tracing."""
    end = START + len(CODES[pid]) - 2
    return (b"\x02\x82" * 8 + b"\x19" + struct.pack("<Q", time)[:7] + b"\x99\x01\x02\x23" +
            b"\xd1" + struct.pack("<Q", START) + b"\xdd" + struct.pack("<Q", end) + b"\x01")


def switches():
    """SWITCH_CPU_WIDE: in before each turn and out behind it."""
    return b"".join(struct.pack("<IHHIIIIQ", 15, out, 32, 0, 0, pid, tid, time + later)
                    for pid, tid, time in TURNS for out, later in ((0, -10), (1 << 13, 10)))


def bundle(folder, pids, kernel=False):
    folder = pathlib.Path(folder)
    for pid, code in CODES.items():
        (folder / f"program-{pid}").write_bytes(program(code))
    (folder / "0.trace").write_bytes(b"".join(turn(pid, time) for pid, _, time in TURNS))
    (folder / "0.switches").write_bytes(switches())
    modules = {pid: {"file": f"program-{pid}", "systemPath": f"/program-{pid}",
                     "loadAddress": BASE} for pid in CODES}
    description = {
        "type": "intel-pt",
        "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
        "cpus": [{"id": 0, "iptTrace": "0.trace", "contextSwitchTrace": "0.switches"}],
        "tscPerfZeroConversion": {"timeMult": 1, "timeShift": 0, "timeZero": "0"},
    }
    if kernel:
        description["kernel"] = {"file": "program-10", "loadAddress": BASE}
    else:
        description["processes"] = [
            {"pid": pid, "triple": "x86_64-*-linux", "modules": [modules[pid]],
             "threads": [{"tid": tid} for tid in sorted({t for p, t, _ in TURNS if p == pid})]}
            for pid in pids]
    (folder / "trace.json").write_text(json.dumps(description))
    return folder / "trace.json"


def run_of(pid):
    return [f"{START + at:016x}" for at in range(len(CODES[pid]) - 2)]


class DecodeBundle(unittest.TestCase):
    def decoded(self, *options, pids=tuple(CODES), kernel=False, status=0, by_folder=False):
        """The lines of addresses and the names of traces."""
        with tempfile.TemporaryDirectory() as folder:
            path = bundle(folder, pids, kernel)
            done = subprocess.run([cases.TAILTRACE, "decode",
                                   path.parent if by_folder else path, *options],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        events = ("[enabled]", "[disabled]", "[resumed]")
        return [line for line in done.stdout.splitlines() if line not in events]

    def test_each_thread_of_several_processes(self):
        self.assertEqual(self.decoded(), ["[thread 11]", *run_of(10), *run_of(10),
                                          "[thread 12]", *run_of(10), "[thread 21]", *run_of(20)])

    def test_a_processor_that_is_not_known_is_told_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = bundle(folder, tuple(CODES))
            done = []
            for model in 85, 1:
                path.write_text(re.sub(r'"model": \d+', f'"model": {model}', path.read_text()))
                done.append(subprocess.run([cases.TAILTRACE, "decode", path], capture_output=True,
                                           text=True, timeout=60))
        self.assertEqual([one.returncode for one in done], [0, 0])
        self.assertEqual(done[1].stdout, done[0].stdout)
        self.assertEqual(done[0].stderr, "")
        self.assertIn("processor 6/1/4 is not known", done[1].stderr)

    def test_one_thread(self):
        self.assertEqual(self.decoded("--tid=21"), run_of(20))
        self.assertEqual(self.decoded("--tid=21", by_folder=True), run_of(20))
        self.assertEqual(self.decoded("--tid=11", pids=(10,)), run_of(10) * 2)
        self.assertEqual(self.decoded("--tid=99", status=2), [])

    def test_a_processor_of_one_process_is_decoded_as_it_is(self):
        lines = self.decoded(pids=(10,))
        self.assertEqual(lines[:1], run_of(10))
        self.assertTrue(any("error" in line for line in lines), lines)  # what others executed

    def test_a_kernel(self):
        self.assertEqual(self.decoded(kernel=True)[:1], run_of(10))
        self.assertEqual(self.decoded("--tid=0", kernel=True, status=2), [])


if __name__ == "__main__":
    unittest.main()
