"""The TUI window of the GDB commands, in a terminal that a program looks at."""

import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import termios
import time

import hosts
import pytest
import rings
import tailtrace

pyte = pytest.importorskip("pyte", reason="python3-pyte is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"])
PROGRAM = BUILD / "tests/programs/three_rounds"
ROWS, COLUMNS = 50, 160
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="GDB is not installed")


class Terminal:
    """GDB in a terminal of its own; `screen()` is what a person would see."""

    def __init__(self, *words):
        self.display = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.display)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # Before GDB asks for it: while GDB starts it does not hear that it changes.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
            command = [*hosts.gdb(), "-nx", "-q", *words]
            os.execvpe(command[0], command, environment)

    def screen(self):
        return "\n".join(self.display.display)

    def wait_for(self, condition):
        """Reads on until the screen shows it."""
        end = time.monotonic() + PATIENCE_S
        while not condition(self.screen()):
            assert time.monotonic() < end, self.screen()
            if select.select([self.fd], [], [], 1)[0]:
                self.stream.feed(os.read(self.fd, 1 << 16))
        return self.screen()

    def say(self, command):
        os.write(self.fd, command.encode() + b"\n")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def terminal():
    words = ["set confirm off", "set pagination off", "set debuginfod enabled off",
             "set sysroot /", f"source {ROOT / 'gdb-scripts/tailtrace.py'}",
             f"target remote | {BUILD}/plugin/tailtrace serve - {PROGRAM}",
             "tbreak main", "continue", "record btrace", "next", "next", "next", "next"]
    opened = Terminal(*[part for word in words for part in ("-ex", word)], str(PROGRAM))
    yield opened
    opened.end()


def marked(screen):
    """What stands behind the mark in the window, between its borders."""
    found = re.search(r"[^\w]x?\d+ =>(.*?)\s*x?\s*$", screen, re.M)
    return found and found[1].strip()


def source_mark(screen):
    """The line of the source window that has GDB's own mark."""
    found = re.search(r"x  >\s+\d+  (.*?)\s+x", screen)
    return found and found[1]


def test_it_follows_every_move(terminal):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    terminal.say("layout tailtrace")
    terminal.wait_for(lambda screen: "history: " in screen and "three_rounds.c" in screen)
    terminal.say("tailtrace last inc")
    screen = terminal.wait_for(lambda screen: (marked(screen) or "").startswith("<inc+0>"))
    assert "<twice+" in screen
    # GDB's own source window has gone along.
    terminal.wait_for(lambda screen: (source_mark(screen) or "").startswith("static int inc"))
    terminal.say("tailtrace finish-back")
    terminal.wait_for(lambda screen: (marked(screen) or "").startswith("<twice+"))
    terminal.say("reverse-stepi")
    terminal.wait_for(lambda screen: "ret" in (marked(screen) or "")
                      or (marked(screen) or "").startswith("<twice+5>"))
    terminal.say("tailtrace goto end")
    terminal.wait_for(lambda screen: marked(screen) == "")
    assert "Traceback" not in terminal.screen() and "Python Exception" not in terminal.screen()


def test_it_says_why_it_is_empty(terminal):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    terminal.say("layout tailtrace")
    terminal.wait_for(lambda screen: "history: " in screen)
    terminal.say("record stop")
    terminal.wait_for(lambda screen: "fix:  record btrace" in screen)


def test_a_long_list_is_paged_and_can_be_left(terminal):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    terminal.say("set pagination on")
    terminal.say("set height 12")
    terminal.say("tailtrace instruction-history /a 1,500")
    terminal.wait_for(lambda screen: "--Type <RET> for more" in screen)
    assert re.search(r"^11\t? +0x", terminal.screen(), re.M) is not None
    terminal.say("q")
    screen = terminal.wait_for(lambda screen: screen.rstrip().endswith("(gdb)"))
    assert "Traceback" not in screen and "Python Exception" not in screen
    terminal.say("set height 0")
    terminal.say("tailtrace instruction-history 501,+1")
    terminal.wait_for(lambda screen: re.search(r"^501 ", screen, re.M) is not None)


def test_names_are_in_colour_on_a_terminal(terminal):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    terminal.say("tailtrace goto -1")
    terminal.wait_for(lambda screen: "#0 " in screen)
    terminal.say("tailtrace where")
    terminal.wait_for(lambda screen: "At instruction " in screen and screen.count("#0 ") == 2)
    rows = [row for row, text in enumerate(terminal.display.display) if text.startswith("#0 ")]
    row = terminal.display.buffer[rows[-1]]
    text = terminal.display.display[rows[-1]]
    name = re.search(r"(\w+) \(", text)
    assert {row[column].fg for column in range(*name.span(1))} == {"brown"}  # yellow, to pyte


def coloured(terminal, begins):
    """The last rows that begin so, each character with its colour and weight."""
    rows = [row for row, text in enumerate(terminal.display.display) if re.match(begins, text)]
    return [[(cell.data, cell.fg, cell.bold) for _, cell in
             sorted(terminal.display.buffer[row].items()) if cell.data != " "] for row in rows]


@pytest.mark.parametrize("setting", ["style enabled on", "style enabled off",
                                     "style disassembler enabled off", "disassembly-flavor intel",
                                     "style function foreground red"])
def test_lists_have_the_colours_of_gdbs_own(terminal, setting):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    terminal.say(f"set {setting}")
    terminal.say("set tailtrace fold-loops off")
    for what, begins in (("instruction-history 3,+20", r"(\d+)\t? +0x"),
                         ("function-call-history /i 1,+9", r"(\d+) +\S+ +inst ")):
        shown = []
        for whose in ("record", "tailtrace"):
            # Nothing is typed ahead: the terminal would show it amid a row of the list.
            terminal.say("shell clear")
            terminal.wait_for(lambda screen: screen.strip() == "(gdb)")
            terminal.say(f"{whose} {what}")
            terminal.wait_for(lambda screen: re.search(r"\S\s+\(gdb\)\s*$", screen) is not None)
            shown.append(coloured(terminal, begins))
        assert len(shown[0]) > 5 and shown[0] == shown[1]
        has_colour = any(colour != "default" for row in shown[0] for _, colour, _ in row)
        assert has_colour == (setting != "style enabled off")


def test_what_others_read_has_no_colours(terminal, tmp_path):
    terminal.wait_for(lambda screen: "(gdb)" in screen and "main () at" in screen)
    for number, pipe in enumerate(("pipe ", "| ")):
        terminal.say(f"{pipe}tailtrace instruction-history -1 | cat > {tmp_path}/{number}")
    terminal.say(f"tailtrace export text {tmp_path}/2 -1")
    terminal.say("python print(len(gdb.execute('tailtrace instruction-history -1', False, True)))")
    screen = terminal.wait_for(lambda screen: re.search(r"^\d+ *$", screen, re.M) is not None)
    texts = [(tmp_path / name).read_text() for name in "012"]
    assert "\033" not in "".join(texts) and texts[0] == texts[1] == texts[2]
    assert int(re.findall(r"^(\d+) *$", screen, re.M)[-1]) == len(texts[0])


def interrupt_an_export(opened, path):
    """Ctrl-C in the middle of a long command."""
    opened.say(f"tailtrace export json {path}")  # takes most of a minute
    opened.wait_for(lambda _: path.exists() and path.stat().st_size > 0)
    os.write(opened.fd, b"\x03")
    screen = opened.wait_for(lambda screen: re.search(r"Quit *$", screen, re.M) is not None)
    assert "Traceback" not in screen and "Python Exception" not in screen
    assert not path.exists()


def test_ctrl_c_ends_a_long_command_and_leaves_no_half_file(tmp_path):
    ring = rings.write_ring(tmp_path / "long.ring", rings.loop_records(1 << 20), capacity=1 << 21,
                            stands_at=rings.LOOP_AT)
    with tailtrace.open(ring, code=[(rings.LOOP_AT, rings.LOOP_CODE)]) as trace:
        trace.save(tmp_path / "long.tt")
    opened = Terminal("-ex", f"source {ROOT / 'gdb-scripts/tailtrace.py'}",
                      "-ex", f"tailtrace load {tmp_path}/long.tt")
    try:
        opened.wait_for(lambda screen: "Loaded 1 thread" in screen)
        interrupt_an_export(opened, tmp_path / "written")
        opened.say("echo it goes on\\n")
        opened.wait_for(lambda screen: re.search(r"^it goes on", screen, re.M) is not None)
    finally:
        opened.end()


def test_ctrl_c_leaves_the_line_to_the_server_in_order(tmp_path):
    program = str(BUILD / "tests/programs/rounds")
    serve = f"{BUILD}/plugin/tailtrace serve --engine=qemu --ring=8M - {program} 5000"
    words = ["set confirm off", "set sysroot /", f"source {ROOT / 'gdb-scripts/tailtrace.py'}",
             f"target remote | {serve}", "tailtrace start", "tbreak rounds.c:26", "continue"]
    opened = Terminal(*[part for word in words for part in ("-ex", word)], program)
    try:
        opened.wait_for(lambda screen: "return sum == 0;" in screen)
        interrupt_an_export(opened, tmp_path / "written")
        opened.say("tailtrace instruction-history -1")
        opened.wait_for(lambda screen: re.search(r"^-?\d+ .*<main", screen, re.M) is not None)
        opened.say("stepi")
        opened.say("print $rip == $pc")
        screen = opened.wait_for(lambda screen: "$1 = 1" in screen)
        assert "Traceback" not in screen and "Python Exception" not in screen
    finally:
        opened.end()
