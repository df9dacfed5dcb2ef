"""LLDB's plugin at a terminal: the ends of words; and while a question takes long, to the command
line or to the debug server: Ctrl-C ends it, and progress events tell of it."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import cases
import rsp
import terminal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debuggers"))
import lldb_stock  # noqa: E402

STAIRS = f"{cases.BINARY_DIR}/tests/programs/stairs"

# Stands in for the command line: says that it runs, and does until it is ended.
ENDLESS = """#!/bin/sh
echo $$ > "$0.running.part"
mv "$0.running.part" "$0.running"
exec sleep infinity
"""

SCRIPT = """
import os, threading, time
import lldb

def interrupted(debugger, folder):
    listener = lldb.SBListener("progress")
    # Newer versions tell of those of plugins apart from their own.
    bits = (getattr(lldb, name, 0) for name in ("eBroadcastBitProgress",
                                                "eBroadcastBitExternalProgress"))
    debugger.GetBroadcaster().AddListener(listener, sum(bits))
    running = f"{folder}/tailtrace.running"
    ended = threading.Event()
    def interrupt():
        while not os.path.exists(running) and not ended.wait(0.05):
            pass
        debugger.GetCommandInterpreter().InterruptCommand()  # as Ctrl-C does
    other = threading.Thread(target=interrupt)
    other.start()
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(f"tailtrace open {folder}", result)
    ended.set()
    other.join()
    print("SAID", repr(result.GetError()))
    pid = int(open(running).read())
    print("LEFT", os.path.exists(f"/proc/{pid}"))
    event = lldb.SBEvent()
    while listener.GetNextEvent(event):
        print("PROGRESS", lldb.SBDebugger.GetProgressFromEvent(event))
"""


def needs_the_plugin(case):
    """Its path; skips the case where there is none."""
    plugin = lldb_stock.plugin(cases.TAILTRACE)
    if lldb_stock.why_not() or not plugin.is_file():
        case.skipTest(lldb_stock.why_not() or "the plugin was not built")
    return plugin


def at_a_terminal(case, plugin, *words):
    """LLDB with the plugin, as a person has it."""
    lldb = terminal.Terminal(*lldb_stock.command(), "-o", f"plugin load {plugin}", *words,
                             "-o", "script print('rea' + 'dy')", size=(100, 200))
    case.addCleanup(lldb.close)
    lldb.expect("ready\n")
    return lldb


class EndsOfWords(cases.CommandCase):
    def setUp(self):
        super().setUp()
        plugin = needs_the_plugin(self)
        if lldb_stock.version() < 22:
            self.skipTest("this LLDB asks no command how its words go on")
        self.lldb = at_a_terminal(self, plugin, "-o", f"target create {STAIRS}")

    def check(self, typed, *ends):
        """What a tabulator adds to a line, or offers for it; leaves an empty one."""
        self.lldb.type(f"{typed}\t@")
        for end in ends[:-1]:
            self.lldb.expect(rf"\n\s+{re.escape(end)}\b")
        self.lldb.expect(re.escape(typed + ends[-1]) + "\a?@")
        self.lldb.type("\x15")  # Ctrl-U

    def test_of_commands_and_of_the_options_that_the_command_line_has(self):
        self.check("tailtrace cal", "ls ")
        self.check("tailtrace calls --li", "mit=")
        self.check("tailtrace calls --js", "on ")
        offered = cases.tailtrace("help", "calls").stdout
        options = sorted(set(re.findall(r"^  (--[a-z-]+)", offered, re.MULTILINE)))
        self.assertIn("--limit", options)
        self.check("tailtrace calls --", *options, "")
        self.check("tailtrace goto --", "")

    def test_of_values(self):
        self.check("tailtrace export --format=perfe", "tto ")
        self.check("tailtrace export --format perfe", "tto ")
        self.check("tailtrace override o", "off", "on", "")

    def test_of_places(self):
        self.check("tailtrace hits mid", "dle ")
        self.check("tailtrace hits --json stai", "rs.c:")
        self.check("tailtrace find --in=mid", "dle ")

    def test_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "recording").mkdir()
            self.check(f"tailtrace open {folder}/rec", "ording/")
            self.check(f"tailtrace export --output={folder}/rec", "ording/")


class WhileItTakesLong(cases.CommandCase):
    def setUp(self):
        super().setUp()
        plugin = needs_the_plugin(self)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.beside = plugin.parent
        # The plugin runs what lies beside its folder.
        (self.folder / "lldb").mkdir()
        self.plugin = shutil.copy(plugin, self.folder / "lldb")
        program = self.folder / "tailtrace"
        program.write_text(ENDLESS)
        program.chmod(0o755)

    def test_ctrl_c_ends_a_question_and_progress_events_tell_of_it(self):
        (self.folder / "long_question.py").write_text(SCRIPT)
        commands = [f"plugin load {self.plugin}",
                    f"command script import {self.folder}/long_question.py",
                    f"script long_question.interrupted(lldb.debugger, '{self.folder}')",
                    "script print(6 * 7)"]
        said = subprocess.run(lldb_stock.command(), input=lldb_stock.script([], commands),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=cases.HANG_S, check=False, env=dict(os.environ)).stdout
        self.assertIn("tailtrace was interrupted", said)
        self.assertIn("LEFT False", said)
        if lldb_stock.version() >= 20:  # older ones let no plugin tell of it
            self.assertRegex(said, r"PROGRESS .*'tailtrace: info'")
        self.assertRegex(said, r"(?m)^42$")

    def test_ctrl_c_that_ends_the_command_line_first_is_said_to_be_that(self):
        (self.folder / "tailtrace").write_text("#!/bin/sh\nkill -s INT $$\n")
        commands = [f"plugin load {self.plugin}", f"tailtrace open {self.folder}"]
        said = subprocess.run(lldb_stock.command(), input=lldb_stock.script([], commands),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=cases.HANG_S, check=False, env=dict(os.environ)).stdout
        self.assertIn("error: tailtrace was interrupted", said)

    def test_ctrl_c_at_a_terminal_ends_a_question_and_nothing_else(self):
        for script in self.beside.glob("*.py"):  # without them LLDB has the commands in C++
            shutil.copy(script, self.folder / "lldb")
        lldb = at_a_terminal(self, self.plugin)
        lldb.type(f"tailtrace open {self.folder}\n")
        running = self.folder / "tailtrace.running"
        while not running.exists():
            os.sched_yield()
        lldb.interrupt()
        lldb.expect("error: tailtrace was interrupted")
        self.assertFalse(os.path.exists(f"/proc/{int(running.read_text())}"))
        lldb.type("script print(6 * 7)\n")
        lldb.expect("\n42\n")


class SlowServer:
    """Stands before a server that listens on a port, and lets it be at work on questions for as
    long as `is_at_work` is set."""

    def __init__(self, port):
        self.is_at_work = threading.Event()
        self.asked = threading.Semaphore(0)  # each time that LLDB was told so
        self.was_stopped = threading.Event()  # and was told that nobody waits
        self.question = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        self.lldb, _ = self.listener.accept()
        threading.Thread(target=self.answer, daemon=True).start()
        while packet := self.lldb.recv(65536):
            self.server.sendall(packet if not packet.startswith(b"$qTailtrace") else
                                self.on_question(packet))
        self.server.shutdown(socket.SHUT_WR)

    def answer(self):
        while data := self.server.recv(65536):
            self.lldb.sendall(data)

    def on_question(self, packet):
        if packet.startswith(b"$qTailtrace.stop"):
            self.was_stopped.set()
            return packet
        if not packet.startswith(b"$qTailtrace.more"):
            self.question = packet
        if not self.is_at_work.is_set():
            return self.question
        self.lldb.sendall(rsp.frame("w"))
        self.asked.release()
        return b""

    def hang_up(self):
        self.lldb.shutdown(socket.SHUT_RDWR)

    def close(self):
        for end in (self.listener, self.server, self.lldb):
            end.close()


class WhileTheServerIsAtWork(cases.CommandCase):
    def setUp(self):
        super().setUp()
        plugin = needs_the_plugin(self)
        server = rsp.Server("--once", "--engine=step", "127.0.0.1:0", STAIRS)
        self.addCleanup(server.close)
        self.server = SlowServer(server.port)
        self.addCleanup(self.server.close)
        commands = ["script lldb.debugger.SetAsync(False)",
                    *lldb_stock.connecting("step", STAIRS, self.server.port),
                    "breakpoint set --name main", "continue", "tailtrace start",
                    "breakpoint set --name top", "continue"]
        self.lldb = at_a_terminal(self, plugin, *(word for c in commands for word in ("-o", c)))

    def ask_while_it_is_at_work(self, question):
        self.server.is_at_work.set()
        self.lldb.type(f"{question}\n")
        for _ in range(3):
            self.assertTrue(self.server.asked.acquire(timeout=cases.HANG_S))

    def test_its_answer_is_waited_for(self):
        self.ask_while_it_is_at_work("tailtrace calls")
        self.server.is_at_work.clear()
        self.lldb.expect(r"middle +stairs\.c:8-9 ")

    def test_ctrl_c_ends_a_question_and_the_next_one_is_answered(self):
        self.ask_while_it_is_at_work("tailtrace calls")
        self.lldb.interrupt()
        self.lldb.expect("error: tailtrace was interrupted")
        self.assertTrue(self.server.was_stopped.is_set())
        self.server.is_at_work.clear()
        self.lldb.type("tailtrace last middle\n")
        self.lldb.expect(r"\[-[0-9]+\]  stairs\.c:8  middle")
        self.lldb.type("register read rip\n")
        self.lldb.expect("rip = 0x[0-9a-f]+ +stairs`top")

    def test_a_connection_that_is_gone_is_told(self):
        self.server.hang_up()
        self.lldb.type("tailtrace calls\n")
        self.lldb.expect("error: cannot ask for the history\n"
                         "  why:  LLDB has no connection to the debug server any more")


if __name__ == "__main__":
    cases.main()
