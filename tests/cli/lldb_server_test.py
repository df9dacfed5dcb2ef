"""`tailtrace-lldb-server`: how LLDB and users start it, and what they are told when it cannot."""

import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile

import cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debuggers"))
import lldb_stock  # noqa: E402

SERVER = str(pathlib.Path(cases.TAILTRACE).with_name("tailtrace-lldb-server"))
PROGRAMS = os.path.join(cases.BINARY_DIR, "tests/programs")
STAIRS = os.path.join(PROGRAMS, "stairs")
ROUNDS = os.path.join(PROGRAMS, "rounds")

INTERRUPT = """
import threading

def run_and_interrupt(debugger):
    process = debugger.GetSelectedTarget().process
    stopped = threading.Event()
    def interrupt():  # which is lost before the program runs
        while not stopped.wait(0.1):
            process.SendAsyncInterrupt()
    other = threading.Thread(target=interrupt)
    other.start()
    process.Continue()
    stopped.set()
    other.join()
"""


class LldbServerCase(cases.CommandCase):
    def setUp(self):
        super().setUp()
        if lldb_stock.why_not():
            self.skipTest(lldb_stock.why_not())

    def lldb(self, *commands, connecting=(), **settings):
        env = {**lldb_stock.debug_server(cases.TAILTRACE, "step"), **settings}
        script = lldb_stock.script(list(connecting), list(commands))
        return subprocess.run(lldb_stock.command(), input=script, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=cases.HANG_S,
                              check=False, env=env).stdout


class StartedByLldb(LldbServerCase):
    def test_a_missing_lldb_server_is_told_with_the_fix(self):
        for start in ("run", "process attach --pid 1"):
            said = self.lldb(f"target create {STAIRS}", start, TAILTRACE_LLDB_SERVER="/nowhere")
            self.assertIn("cannot find LLDB's lldb-server: /nowhere", said)
            self.assertIn("fix: export TAILTRACE_LLDB_SERVER=", said)

    def test_what_is_no_lldb_server_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            echo = pathlib.Path(folder, "echo")
            echo.write_text("#!/bin/sh\nexec cat <&3 >&3\n")
            echo.chmod(0o755)
            for below, why in (("/bin/false", "exited with status 1 at once"),
                               (str(echo), "answers the first packet as none does")):
                said = self.lldb(f"target create {STAIRS}", "run", TAILTRACE_LLDB_SERVER=below)
                self.assertIn(f"cannot use {below} as LLDB's lldb-server", said)
                self.assertIn(why, said)
                self.assertIn("fix: export TAILTRACE_LLDB_SERVER=", said)

    def test_a_server_below_that_dies_takes_no_debugger_with_it(self):
        kill = ("script import os, signal; "
                "stat = open(f'/proc/{lldb.process.id}/stat').read(); "
                "os.kill(int(stat.rsplit(')', 1)[1].split()[1]), signal.SIGKILL)")
        said = self.lldb(f"target create {STAIRS}", "breakpoint set --name main", "run",
                         "thread trace start", kill, "thread step-inst",
                         "thread trace dump instructions", "process status", "script print(6 * 7)")
        self.assertRegex(said, "lost connection|Resume timed out")  # as of stock LLDB
        self.assertRegex(said, r"(?m)^42$")

    def test_what_no_lldb_would_ask_is_refused(self):
        packets = ['jLLDBTraceStart:{"type":"intel-pt","tids":[999999],"iptTraceSize":4096}]',
                   'jLLDBTraceGetBinaryData:{"type":"intel-pt","kind":"iptTrace","tid":999999}]',
                   'jLLDBTraceStop:{"type":"intel-pt","tids":[999999]}]', "jLLDBTraceStart:rubbish"]
        said = self.lldb(f"target create {STAIRS}", "breakpoint set --name main", "run",
                         *(f"process plugin packet send '{packet}'" for packet in packets),
                         "thread trace start --size 9223372036854775808",
                         "thread trace start --size 18446744073709551615",
                         "thread trace stop", "thread trace start --size 0", "thread trace start",
                         "thread step-inst", "thread trace dump instructions --count 1")
        self.assertEqual(len(re.findall(r"response: E\d\d;", said)), len(packets), said)
        self.assertIn(b"There is no thread 999999".hex(), said)
        self.assertIn("It was 18446744073709551615.", said)
        self.assertIn("It was 0.", said)
        # LLDB may echo what it reads.
        self.assertRegex(said, r"(?s)dump instructions --count 1.*stairs`main.*@@end@@")

    def test_an_unknown_engine_is_told(self):
        said = self.lldb(f"target create {STAIRS}", "run", TAILTRACE_ENGINE="steam")
        self.assertIn("there is no engine `steam`", said)

    def test_an_interrupt_stops_a_program_that_is_stepped_and_one_that_is_not(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(INTERRUPT)
            script.flush()
            name = pathlib.Path(script.name).stem
            interrupt = f"script {name}.run_and_interrupt(lldb.debugger)"
            said = self.lldb(f"command script import {script.name}", f"target create {ROUNDS}",
                             "breakpoint set --name main --one-shot true", "process launch -- -1",
                             "process trace start", interrupt, "thread list",
                             "thread trace dump info", "process trace stop", interrupt,
                             "thread list", "process kill", "process status")
        self.assertEqual(said.count("stop reason = signal SIGSTOP"), 2, said)
        self.assertIn("Number of individual errors: 0\n", said)
        self.assertIn("exited with status = ", said)

    def lldb_behind(self, *commands):
        """One that has done these, and the number of its process."""
        lldb = subprocess.Popen(lldb_stock.command(), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True,
                                env=lldb_stock.debug_server(cases.TAILTRACE, "step"))
        commands = (*commands, "script print('@@', lldb.target.process.id, flush=True)", "")
        lldb.stdin.write("\n".join(commands))
        lldb.stdin.flush()
        return lldb, next(int(line.split()[1]) for line in lldb.stdout if line.startswith("@@ "))

    def test_leaves_no_server_behind_when_lldb_is_killed(self):
        lldb, pid = self.lldb_behind("script lldb.debugger.SetAsync(False)",
                                     f"target create {STAIRS}", "breakpoint set --name main",
                                     "run")
        held = os.pidfd_open(pid)
        lldb.kill()
        lldb.communicate()
        self.addCleanup(os.close, held)
        ready, _, _ = select.select([held], [], [], cases.HANG_S)
        self.assertTrue(ready, f"process {pid} is still there")

    def attached_until_lldb_is_killed(self, *commands):
        """A program that computes without end."""
        program = subprocess.Popen([ROUNDS, "-1"], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        lldb, _ = self.lldb_behind("script lldb.debugger.SetAsync(False)",
                                   f"process attach --pid {program.pid}", *commands)
        lldb.kill()
        lldb.communicate()
        return program

    def test_lets_go_of_a_program_in_the_middle_of_its_steps_when_lldb_is_killed(self):
        program = self.attached_until_lldb_is_killed(
            "process trace start", "script lldb.debugger.SetAsync(True)", "continue")
        cases.assert_let_go(self, program)

    def test_leaves_no_breakpoint_behind_when_lldb_is_killed(self):
        program = self.attached_until_lldb_is_killed("breakpoint set --name leaf")
        cases.assert_let_go(self, program)


class StartedByHand(LldbServerCase):
    def run_server(self, *arguments, **settings):
        return subprocess.run([SERVER, *arguments], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=cases.HANG_S,
                              env={**os.environ, **settings})

    def test_serves_a_program_at_a_port(self):
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb") as port:
            server = subprocess.Popen([SERVER, "gdbserver", f"--pipe={write_end}", "127.0.0.1:0",
                                       "--", STAIRS], pass_fds=[write_end],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            os.close(write_end)
            number = port.read().rstrip(b"\0").decode()
        said = self.lldb(f"gdb-remote {number}", "thread trace start", "thread step-inst",
                         "thread trace dump info", "process kill",
                         connecting=[f"target create {STAIRS}"])
        self.assertIn("Trace technology: intel-pt", said)
        self.assertEqual(server.wait(cases.HANG_S), 0)

    def test_a_missing_lldb_server_is_said(self):
        outcome = self.run_server("gdbserver", "127.0.0.1:0", TAILTRACE_LLDB_SERVER="/nowhere")
        self.assert_error(outcome, 3, "cannot find LLDB's lldb-server", why="/nowhere",
                          fix="export TAILTRACE_LLDB_SERVER=")

    def test_no_lldb_server_anywhere_is_said_with_its_package(self):
        with tempfile.TemporaryDirectory() as folder:
            outcome = self.run_server("gdbserver", "127.0.0.1:0", PATH=folder)
        self.assert_error(outcome, 3, "cannot find LLDB's lldb-server",
                          fix="sudo apt-get install lldb-22")

    def test_a_command_line_that_makes_no_sense_is_said(self):
        outcome = self.run_server("gdbserver")
        self.assert_error(outcome, 2, "cannot understand the arguments", why="[HOST]:PORT")

    def test_what_is_not_gdbserver_is_lldb_servers_own(self):
        self.assertIn("lldb", self.run_server("version").stderr)


if __name__ == "__main__":
    cases.main()
