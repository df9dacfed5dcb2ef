"""A question whose answer takes long says at a terminal how far it is; Ctrl-C ends it with what is
known by then."""

import json
import pathlib
import tempfile

import cases
import terminal
from decode_bundle_test import BASE, START, program

LOOP = b"\x75\xfe"  # jnz to itself
# From PSB+ at the loop on, 47 rounds in each packet.
SEGMENT = (b"\x02\x82" * 8 + b"\x99\x01\xdd" + START.to_bytes(8, "little") + b"\x02\x23" +
           (b"\x02\xa3" + b"\xff" * 6) * 500)
# As much as takes any machine seconds to answer.
SEGMENTS = 10000


class LongQuestion(cases.CommandCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program").write_bytes(program(LOOP))
        (self.folder / "trace").write_bytes(SEGMENT * SEGMENTS)
        (self.folder / "trace.json").write_text(json.dumps({
            "type": "intel-pt",
            "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
            "processes": [{
                "pid": 10, "triple": "x86_64-*-linux",
                "modules": [{"file": "program", "systemPath": "/program", "loadAddress": BASE}],
                "threads": [{"tid": 10, "iptTrace": "trace"}]}]}))

    def test_ctrl_c_ends_it_with_what_is_known(self):
        asked = terminal.Terminal(cases.TAILTRACE, "stats", str(self.folder))
        self.addCleanup(asked.close)
        asked.expect(r"answering: at item -[\d.]+( M)? of \d+\.\d M")
        asked.interrupt()
        counted = int(asked.expect(r"instructions +(\d+), ")[1])
        size = int(asked.expect(r"interrupted at item -\d+ of (\d+): the answer is of a part")[1])
        self.assertEqual(size, SEGMENTS * 47 * 500)
        self.assertTrue(0 < counted < size, counted)
        self.assertEqual(asked.exit_status(), 0)


if __name__ == "__main__":
    cases.main()
