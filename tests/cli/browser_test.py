"""The full-screen browser of `tailtrace open`, at a terminal that pyte emulates: what is on its
screen is compared with what the other verbs print of the same recording."""

import json
import os
import re
import shutil
import signal
import tempfile
import termios
import time
import unittest

import cases
import terminal

try:
    import pyte
except ImportError:
    pyte = None

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")
UP, DOWN, LEFT, HOME, END = "\33OA", "\33OB", "\33OD", "\33OH", "\33OF"


class Screen(terminal.Terminal):
    """`tailtrace ARGS` in a terminal that is more than a line: text is what is on it."""

    def __init__(self, *arguments, rows=24, columns=80, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        super().__init__(cases.TAILTRACE, *arguments, size=(rows, columns),
                         **{"TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})

    def resize(self, rows, columns):
        """Nothing is left of what was on it."""
        self.screen.resize(rows, columns)
        self.screen.erase_in_display(2)
        self.look()
        terminal.set_size(self.fd, (rows, columns))

    def take(self, data):
        self.bytes += data
        self.stream.feed(data)
        self.look()

    def look(self):
        self.text = "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, holds):
        """Reads until that holds of the text on the screen; the text."""
        deadline = time.monotonic() + cases.HANG_S
        while not holds(self.text):
            if not self.read_more(deadline):
                raise AssertionError("it ended; on the screen is:\n" + self.text)
        return self.text

    def expect(self, pattern):
        """Reads until the pattern is on the screen, wherever; the match."""
        return re.search(pattern, self.wait_for(re.compile(pattern).search))


def modes_of_a_new_terminal():
    ours, programs = os.openpty()
    try:
        return termios.tcgetattr(ours)
    finally:
        os.close(ours)
        os.close(programs)


@unittest.skipUnless(pyte, "no pyte")
class Browser(cases.CommandCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.session = os.path.join(cls.folder, "session")
        cls.recorded = cases.tailtrace("run", "--no-debugger", "--keep=" + cls.session,
                                       "--ring=1048576", "--", PROGRAM, "3")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        cases.needs_engine(self, "qemu")
        self.assertEqual(self.recorded.returncode, 0, self.recorded.stderr)

    def browse(self, *arguments, **options):
        screen = Screen("open", self.session, *arguments, **options)
        self.addCleanup(screen.close)
        return screen

    def items(self, *words):
        outcome = cases.tailtrace("history", "--json", self.session, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return json.loads(outcome.stdout)

    def last(self, location):
        outcome = cases.tailtrace("last", "--json", self.session, location)
        return json.loads(outcome.stdout)["threads"][0]["hits"]

    def leave(self, screen):
        screen.type("q")
        self.assertEqual(screen.exit_status(), 0)
        self.assert_restored(screen)

    def assert_restored(self, screen):
        self.assertEqual(termios.tcgetattr(screen.fd), modes_of_a_new_terminal())
        self.assertGreater(screen.bytes.rfind(b"\33[?1049l"), screen.bytes.rfind(b"\33[?1049h"))
        self.assertGreater(screen.bytes.rfind(b"\33[?25h"), screen.bytes.rfind(b"\33[?25l"))

    def test_begins_at_the_newest_and_steps_back_and_forward(self):
        newest = self.items("-3,-1")["items"]
        screen = self.browse()
        screen.expect(r"^ \[-1\]  thread ")
        screen.expect(r"(?m)^> +\[-1\] +" + re.escape(newest[2]["text"].split()[0]))
        screen.type(UP + "k")
        screen.expect(r"(?m)^> +\[-3\] +" + re.escape(newest[0]["text"].split()[0]))
        screen.type(DOWN)
        screen.expect(r"(?m)^> +\[-2\]")
        screen.type("jj")
        screen.expect("this is the newest")
        self.leave(screen)

    def test_shows_every_instruction_that_history_prints(self):
        screen = self.browse(rows=50, columns=200)
        printed = cases.tailtrace("history", self.session, "-20,-1").stdout.splitlines()
        instructions = [line.strip() for line in printed if line.startswith("    [")]
        self.assertEqual(len(instructions), 20)
        screen.wait_for(lambda text: all(line in text for line in instructions))
        self.leave(screen)

    def test_searches_back_and_shows_the_source_and_the_callers(self):
        hits = self.last("leaf")
        hit = hits[-1]
        screen = self.browse(columns=120)
        screen.type("/leaf\r")
        screen.expect(r"(?m)^> +\[%d\]" % hit["position"])
        with open(hit["file"], encoding="utf-8") as file:
            source = file.read().splitlines()[hit["line"] - 1]
        screen.expect(r"> +%d  %s" % (hit["line"], re.escape(source[:40])))
        for level, frame in enumerate(hit["path"][:3]):
            screen.expect(rf"#{level} rounds.c:{frame['line']}  {frame['function']}\b")
        self.leave(screen)

    def test_goes_on_searching_in_both_directions(self):
        outcome = cases.tailtrace("hits", "--json", self.session, "leaf")
        positions = [hit["position"] for hit in json.loads(outcome.stdout)["threads"][0]["hits"]]
        screen = self.browse()
        screen.type("/leaf\rn")
        screen.expect(rf"\[{positions[-2]}[] ]")
        screen.type("n")
        screen.expect(rf"^.*\[{positions[-3]}[] ]")
        screen.type("N")
        screen.expect(rf"^.*\[{positions[-2]}[] ]")
        screen.type("/abort\r")
        screen.expect("abort was not executed before here")
        screen.type("/leav\r")
        screen.expect("there is no function `leav`")
        screen.type("/a:b:c +\r")
        screen.wait_for(lambda text: "leav" not in text)
        self.leave(screen)

    def test_goes_to_positions_and_both_ends(self):
        size = self.items("-1")["size"]
        screen = self.browse()
        screen.type("g-100\r")
        screen.expect(r"(?m)^> +\[-100\]")
        screen.type("g7\r")
        screen.expect(rf"^ \[{7 - size - 1} of {size}\]")
        screen.type(HOME)
        screen.expect(rf"(?m)^> +\[-{size}\]")
        screen.type(UP)
        screen.expect("this is the oldest that is known")
        screen.type(f"g{size + 1}\r")
        screen.wait_for(lambda text: "oldest" not in text)
        screen.type(END)
        screen.expect(rf"^ \[-1 of {size}\]")
        self.leave(screen)

    def test_steps_by_lines_and_out_to_the_caller(self):
        hit = self.last("leaf")[-1]
        caller = hit["path"][1]
        screen = self.browse(columns=120)
        screen.type("/leaf\r")
        screen.expect(r"(?m)^> +\[%d\]" % hit["position"])
        screen.type("u")
        screen.expect(rf"#0 rounds.c:{caller['line']}  {caller['function']}\b")
        # The call itself; from there to the beginning of its line, then to another one.
        screen.expect(r"(?m)^> +\[%d\] +call " % (hit["position"] - 1))
        screen.type(LEFT)
        first = int(screen.expect(r"(?m)^> +\[(?!%d\])(-\d+)\]" % (hit["position"] - 1))[1])
        items = self.items(f"{first - 1},{hit['position'] - 1}")["items"]
        self.assertEqual({item["line"] for item in items[1:]}, {caller["line"]})
        self.assertNotEqual((items[0]["function"], items[0]["line"]),
                            (caller["function"], caller["line"]))
        screen.type("l")
        screen.expect(r"(?m)^> +\[%d\]" % hit["position"])
        self.leave(screen)

    def test_follows_the_terminals_size(self):
        screen = self.browse()
        screen.expect(r"\[-1\]")
        for rows, columns in ((40, 132), (16, 60), (5, 20), (2, 10), (1, 5), (24, 80)):
            screen.resize(rows, columns)
            screen.wait_for(lambda text: text.startswith(" [-"[:columns]))
            screen.type("k")
        screen.expect(r"(?m)^> +\[-7\]")
        screen.expect(r"(?m)\| *#0 ")
        self.leave(screen)

    def test_needs_no_colours(self):
        for environment in ({"TERM": "vt100"}, {"TERM": "xterm", "NO_COLOR": "1"}):
            with self.subTest(environment):
                screen = self.browse(**environment)
                screen.expect(r"(?m)^> +\[-1\]")
                screen.type("q")
                self.assertEqual(screen.exit_status(), 0)
                self.assertNotRegex(screen.bytes, rb"\x1b\[(?:\d+;)*3[0-7](?:;\d+)*m")

    def test_help_names_the_keys(self):
        screen = self.browse()
        screen.expect(r"\?: keys")
        screen.type("?")
        screen.expect("search a LOCATION back")
        screen.type(" ")
        screen.expect(r"(?m)^> +\[-1\]")
        self.leave(screen)

    def test_signals_end_it_with_the_terminal_restored(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV):
            with self.subTest(number):
                screen = self.browse()
                screen.expect(r"(?m)^> +\[-1\]")
                os.kill(screen.pid, number)
                self.assertEqual(screen.exit_status(), -number)
                self.assert_restored(screen)

    def test_control_c_does_not_end_it(self):
        screen = self.browse()
        screen.expect(r"(?m)^> +\[-1\]")
        screen.type("\x03")
        screen.expect("q quits")
        screen.type("/le\x03")
        screen.wait_for(lambda text: "back to" not in text)
        self.leave(screen)

    def test_ends_when_the_terminal_does(self):
        screen = self.browse()
        screen.expect(r"(?m)^> +\[-1\]")
        os.close(screen.fd)
        screen.fd = os.open("/dev/null", os.O_RDONLY)
        _, status = os.waitpid(screen.pid, 0)
        screen.pid = 0
        self.assertEqual(os.waitstatus_to_exitcode(status), -signal.SIGHUP)

    def test_shows_callers_from_before_the_history(self):
        bundle = os.path.join(self.folder, "crash.tt")
        with tempfile.TemporaryFile("w+") as words:
            words.write("crash\n")
            words.seek(0)
            cases.tailtrace("run", "--on-crash=" + bundle, "--ring=64", "--",
                            os.path.join(cases.BINARY_DIR, "tests/programs/waits_for_words"),
                            stdin=words)
        screen = Screen("open", bundle, rows=40, columns=220)
        self.addCleanup(screen.close)
        # So few branches are none of what called main.
        screen.expect(r"#4 waits_for_words\.c:50  main *\n.*#5 [^\n]+\(called before\)")
        self.leave(screen)

    def test_prints_where_it_cannot_be_shown(self):
        printed = cases.tailtrace("info", self.session).stdout
        self.assertEqual(cases.tailtrace("open", self.session).stdout, printed)
        screen = self.browse(TERM="dumb", columns=200)
        self.assertEqual(screen.exit_status(), 0)
        self.assertIn("  instructions ", screen.text)


cases.main()
