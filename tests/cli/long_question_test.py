"""A question whose answer takes long says at a terminal how far it is; Ctrl-C ends it with what is
known by then."""

import fcntl
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import unittest

import cases
import terminal
from decode_bundle_test import BASE, START, program

LOOP = b"\x75\xfe\xeb\xfc"  # jnz to itself; jmp to the jnz
JUMP = START + 2
# From PSB+ at the loop on, 47 rounds in each packet.
SEGMENT = (b"\x02\x82" * 8 + b"\x99\x01\xdd" + START.to_bytes(8, "little") + b"\x02\x23" +
           (b"\x02\xa3" + b"\xff" * 6) * 500)
LEAVE = b"\x04\x06"  # the loop once, and go round again
# As much as takes any machine seconds to answer.
SEGMENTS = 10000


def waiting(pipe):
    """How many bytes nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


class LongQuestion(cases.CommandCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program").write_bytes(program(LOOP))
        (self.folder / "trace").write_bytes(SEGMENT * SEGMENTS + LEAVE)
        (self.folder / "trace.json").write_text(json.dumps({
            "type": "intel-pt",
            "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
            "processes": [{
                "pid": 10, "triple": "x86_64-*-linux",
                "modules": [{"file": "program", "systemPath": "/program", "loadAddress": BASE}],
                "threads": [{"tid": 10, "iptTrace": "trace"}]}]}))

    def ask_and_interrupt(self, verb, *words):
        asked = terminal.Terminal(cases.TAILTRACE, verb, str(self.folder), *words)
        self.addCleanup(asked.close)
        # A search has looked at the newest of its stretches by then.
        asked.expect(r"answering: at item -\d+\.\d M of \d+\.\d M")
        asked.interrupt()
        return asked

    def test_ctrl_c_ends_a_count_with_the_oldest_part(self):
        asked = self.ask_and_interrupt("stats")
        counted = int(asked.expect(r"instructions +(\d+), ")[1])
        size = int(asked.expect(r"interrupted at item -\d+ of (\d+): the answer is of a part")[1])
        self.assertEqual(size, SEGMENTS * 47 * 500 + 3)
        self.assertTrue(0 < counted < size, counted)
        self.assertEqual(asked.exit_status(), 0)

    def test_ctrl_c_ends_a_search_with_what_was_found(self):
        asked = self.ask_and_interrupt("last", f"*{JUMP:#x}", "--limit=2")
        asked.expect(rf"\[-2\] +{JUMP:#x} +jmp")
        asked.expect(r"interrupted at item -\d+ of \d+")
        self.assertEqual(asked.exit_status(), 0)

    def test_ctrl_c_ends_a_search_without_saying_that_it_was_not_reached(self):
        for verb in "last", "hits":
            asked = self.ask_and_interrupt(verb, f"*{JUMP + 1:#x}")
            asked.expect(r"interrupted at item -\d+ of \d+")
            asked.expect(r"error: \*0x[0-9a-f]+ was not found yet\s+"
                         r"why:  only a part of the history was looked at")
            self.assertEqual(asked.exit_status(), 1)

    def test_ctrl_c_ends_what_needs_all_calls(self):
        for verb, word, option in (("calls", "all", ": --newest=N"),
                                   ("calls", "main", ": --newest=N"),
                                   ("diff", str(self.folder), "")):
            asked = self.ask_and_interrupt(verb, word)
            asked.expect(r"error: the list of calls was given up\s+why:  it was interrupted\s+"
                         rf"fix:  ask for fewer of its newest instructions{option}\s")
            self.assertEqual(asked.exit_status(), 1)

    def test_ctrl_c_ends_a_list_behind_a_line(self):
        trace = str(self.folder / "trace")
        for first, *words in ((r"\[-2000000\]", "history", str(self.folder), "-2000000,-1"),
                              (r"\[-300000\]", "find", str(self.folder), "--kind=taken",
                               "--range=-300000,-1", "--limit=300000"),
                              ("conditional", "decode", str(self.folder), "--print=records"),
                              ("TTT", "packets", trace)):
            with self.subTest(words[0]):
                asked = terminal.Terminal(cases.TAILTRACE, *words)
                self.addCleanup(asked.close)
                asked.expect(first)
                asked.interrupt()
                asked.expect(r"interrupted: what follows is not shown\n")
                self.assertEqual(asked.exit_status(), 0)

    @unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
    def test_ctrl_c_ends_source_lines_behind_a_line(self):
        cases.needs_engine(self, "qemu")
        # More lines than a pipe has room for.
        (self.folder / "lines.c").write_text(
            "int main(void) {\n  volatile int x = 0;\n" + "  x += 1;\n" * 20000 + "}\n")
        built = str(self.folder / "lines")
        subprocess.run(["gcc", "-g", "-o", built, built + ".c"], check=True)
        session = str(self.folder / "session")
        cases.tailtrace("run", "--no-debugger", "--engine=qemu", "--keep=" + session, "--", built)
        left_out = b"interrupted: what follows is not shown\n"
        # A tracefile is whole with what it has of the only file.
        for how, whole, warned in (("--lines", rb"^ +\d+ +\d+    x \+= 1;$", left_out),
                                   ("--lcov", b"^end_of_record$", b"")):
            asked = self.start("coverage", how, "--file=lines.c", session)
            begin = asked.stdout.read(1)
            asked.send_signal(signal.SIGINT)
            rest, said = asked.communicate(timeout=cases.HANG_S)
            lines = (begin + rest).split(b"\n")
            self.assertEqual(lines.pop(), b"")
            self.assertRegex(lines[-1], whole)
            self.assertEqual(asked.returncode, 0)
            self.assertEqual(said, warned)

    def start(self, *words):
        asked = subprocess.Popen([cases.TAILTRACE, *words], bufsize=0, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(asked.kill)
        return asked

    def interrupted_at_the_last_line(self, list_of, more=""):
        """The list of so many lines that the last one, before `more`, has to wait until somebody
        reads; what was said behind a Ctrl-C meanwhile, and the part before `more`."""
        pipe_bytes, gathered_bytes = 1 << 16, 4096
        count, too_many = 1000, 1
        while too_many:
            count -= too_many
            whole = cases.tailtrace(*list_of(count)).stdout
            part = whole[:whole.index(more)] if more else whole
            behind = len(part) - pipe_bytes - gathered_bytes
            too_many = (behind - 1) // len(part.splitlines(keepends=True)[-1])
        asked = self.start(*list_of(count))
        call = pathlib.Path(f"/proc/{asked.pid}/syscall")
        while not (call.read_text().startswith("1 0x1 ") and waiting(asked.stdout) == pipe_bytes):
            self.assertIsNone(asked.poll())
        asked.send_signal(signal.SIGINT)
        shown, said = asked.communicate(timeout=cases.HANG_S)
        self.assertEqual((shown.decode(), asked.returncode), (part, 0))
        return said

    def find(self, count):
        return "find", str(self.folder), "--kind=taken", "--range=-9999,-1", f"--limit={count}"

    def test_ctrl_c_at_the_last_line_leaves_nothing_out(self):
        for list_of in lambda count: ("history", str(self.folder), f"-{count},-1"), self.find:
            self.assertEqual(self.interrupted_at_the_last_line(list_of), b"")

    def test_ctrl_c_at_the_last_line_of_a_thread_leaves_out_the_next(self):
        bundle = json.loads((self.folder / "trace.json").read_text())
        bundle["processes"][0]["threads"].append({"tid": 11, "iptTrace": "trace"})
        (self.folder / "trace.json").write_text(json.dumps(bundle))
        said = self.interrupted_at_the_last_line(self.find, "thread 10.11")
        self.assertEqual(said, b"interrupted: what follows is not shown\n")

    def test_what_was_interrupted_can_be_read(self):
        asked = self.start("decode", "--json", "--print=records", str(self.folder))
        begin = asked.stdout.read(1)
        asked.send_signal(signal.SIGINT)
        rest, said = asked.communicate(timeout=cases.HANG_S)
        self.assertTrue(json.loads(begin + rest)["items"])
        self.assertEqual((asked.returncode, said), (0, b"interrupted: what follows is not shown\n"))

    def test_a_part_of_an_export_does_not_pass_for_it(self):
        asked = self.start("export", "--format=npy", "--range=-2000000,-1", str(self.folder))
        asked.stdout.read(1)
        asked.send_signal(signal.SIGINT)
        _, said = asked.communicate(timeout=cases.HANG_S)
        self.assertIn(b"error: the export was interrupted", said)
        self.assertEqual(asked.returncode, 1)

    def test_a_list_ends_quietly_when_nobody_reads_on(self):
        for words in (["history", str(self.folder), "-2000000,-1"],
                      ["packets", str(self.folder / "trace")]):
            asked = self.start(*words)
            asked.stdout.read(1)
            asked.stdout.close()
            self.assertEqual(asked.stderr.read(), b"")
            self.assertEqual(asked.wait(cases.HANG_S), -signal.SIGPIPE)
            asked.stderr.close()


if __name__ == "__main__":
    cases.main()
