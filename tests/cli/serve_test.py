"""`tailtrace serve`: what it does when the program, the debugger or the server below it misbehave,
and what it leaves behind."""

import json
import os
import re
import resource
import select
import signal
import stat
import subprocess
import tempfile

import cases
import rsp

HERE = os.path.dirname(os.path.abspath(__file__))
TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")
ROUNDS = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")
RELAY = os.path.join(cases.BINARY_DIR, "tests/programs/relay")
SPLITS_LOCKS = os.path.join(cases.BINARY_DIR, "tests/programs/splits_locks")
ENDED_BY_SIGTERM = 128 + signal.SIGTERM


class Serving(cases.EngineCase):
    """Cases with a real server below."""

    def serve(self, *arguments, env=None):
        server = rsp.Server(f"--engine={self.engine}", *arguments, env=env)
        self.addCleanup(server.close)
        self.assertIsNotNone(server.port, server.said)
        return server

    def connect(self, server):
        debugger = rsp.Debugger(server.port)
        self.addCleanup(debugger.close)
        return debugger

    def recording(self, *arguments, env=None):
        """A server whose program is recorded and has made one step, and the debugger."""
        server = self.serve(*arguments, env=env)
        debugger = self.connect(server)
        debugger.greet()
        stop = debugger.ask("?")
        thread = re.search(r"thread:([^;]+);", stop)[1]
        self.assertEqual(debugger.ask("Hg" + thread), "OK")
        self.assertEqual(debugger.ask("Qbtrace:bts"), "OK")
        self.assertIn("thread:", debugger.ask(f"vCont;s:{thread}"))
        return server, debugger


class TheEnd(Serving):
    def test_sigterm_takes_everything_away(self):
        with tempfile.TemporaryDirectory() as folder:
            places = ("TMPDIR", "XDG_RUNTIME_DIR", "TAILTRACE_SESSIONS")
            env = dict(os.environ, **{place: folder for place in places})
            server, _ = self.recording("127.0.0.1:0", TALKS, env=env)
            for path, folders, files in os.walk(folder):
                for name in folders:
                    mode = os.stat(os.path.join(path, name)).st_mode
                    self.assertEqual(stat.S_IMODE(mode), 0o700, name)
                for name in files:
                    mode = os.stat(os.path.join(path, name)).st_mode
                    if stat.S_ISREG(mode):
                        self.assertEqual(stat.S_IMODE(mode), 0o600, name)
            self.assertNotEqual(os.listdir(folder), [])
            family = cases.children_of(server.process.pid)
            self.assertNotEqual(family, [])
            server.process.terminate()
            self.assertEqual(server.wait(), ENDED_BY_SIGTERM)
            for pid in family:
                cases.wait_until_gone(pid)
            self.assertEqual(os.listdir(folder), [])

    def test_kill_leaves_no_process_behind(self):
        server, _ = self.recording("127.0.0.1:0", TALKS)
        family = cases.children_of(server.process.pid)
        server.process.kill()
        for pid in family:
            cases.wait_until_gone(pid)

    def test_what_a_killed_server_left_behind_goes_with_the_next(self):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, TAILTRACE_SESSIONS=folder, XDG_RUNTIME_DIR=folder)
            first, _ = self.recording("127.0.0.1:0", TALKS, env=env)
            [used] = os.listdir(folder)
            second, _ = self.recording("127.0.0.1:0", TALKS, env=env)
            self.make_old(folder)
            third, _ = self.recording("127.0.0.1:0", TALKS, env=env)
            self.assertIn(used, os.listdir(folder), "removed though it was in use")
            for server in (first, second):
                family = cases.children_of(server.process.pid)
                server.process.kill()
                for pid in [server.process.pid] + family:
                    cases.wait_until_gone(pid)
            self.make_old(folder)
            self.recording("127.0.0.1:0", TALKS, env=env)
            left = os.listdir(folder)
            self.assertEqual(len(left), 2, "the third's and the fourth's")
            self.assertNotIn(used, left)
            third.process.terminate()
            third.wait()

    @staticmethod
    def make_old(folder):
        """None of the folders in it was made just now."""
        for name in os.listdir(folder):
            os.utime(os.path.join(folder, name), (0, 0))

    def test_killed_while_the_program_runs_ends_the_program_too(self):
        server, debugger = self.recording("127.0.0.1:0", TALKS)
        family = cases.children_of(server.process.pid)
        debugger.send("vCont;c")
        server.process.kill()
        for pid in family:
            cases.wait_until_gone(pid)

    def test_once_ends_with_the_debugger(self):
        server, debugger = self.recording("--once", "127.0.0.1:0", TALKS)
        family = cases.children_of(server.process.pid)
        debugger.close()
        self.assertEqual(server.wait(), 0)
        for pid in family:
            cases.wait_until_gone(pid)

    def test_recording_is_kept_where_it_was_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "kept")
            server, debugger = self.recording(f"--keep={kept}", "127.0.0.1:0", TALKS)
            program = int(re.match(r"QCp([0-9a-f]+)\.", debugger.ask("qC"))[1], 16)
            server.process.terminate()
            self.assertEqual(server.wait(), ENDED_BY_SIGTERM)
            self.assertEqual(stat.S_IMODE(os.stat(kept).st_mode), 0o700)
            outcome = cases.tailtrace("info", kept)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertIn(str(program), outcome.stdout)

    def test_monitor_exit_ends_it(self):
        server, debugger = self.recording("--multi", "127.0.0.1:0", TALKS)
        debugger.send("qRcmd," + b"exit".hex())
        self.assertEqual(server.wait(), 0)


class KeptByTheServer(Serving):
    """What is made into a bundle at the end."""

    def run_to_main(self, debugger, program):
        pid, thread = re.search(r"thread:(p([0-9a-f]+)\.[^;]+);", debugger.ask("?")).group(2, 1)
        with open(f"/proc/{int(pid, 16)}/maps", encoding="utf-8") as maps:
            begin = next(int(line.split("-")[0], 16) for line in maps if program in line)
        names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        main = begin + int(re.search(r"(?m)^(\w+) T main$", names)[1], 16)
        self.assertEqual(debugger.ask(f"Z0,{main:x},1"), "OK")
        self.assertIn("thread:", debugger.ask("vCont;c"))
        self.assertEqual(debugger.ask(f"z0,{main:x},1"), "OK")
        self.assertEqual(debugger.ask("Hg" + thread), "OK")

    def test_what_lldb_cannot_show_of_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            program, *libraries = (os.path.join(cases.BINARY_DIR, "tests/programs", name) for name
                                   in ("replaces_library", "first_same.so", "second_same.so"))
            server = self.serve(f"--keep={folder}/kept", "--once", "127.0.0.1:0", program,
                                *libraries)
            debugger = self.connect(server)
            debugger.greet()
            self.run_to_main(debugger, program)
            self.assertEqual(debugger.ask("Qbtrace:bts"), "OK")
            self.assertEqual(debugger.ask("vCont;c").split(";")[0], "W0")
            debugger.close()
            self.assertEqual(server.wait(), 0)
            self.assertIn(f"error: LLDB cannot show all that ran in {libraries[0]}\n", server.said)


class Network(Serving):
    def test_nothing_listens_but_on_loopback(self):
        server, _ = self.recording("127.0.0.1:0", TALKS)
        sockets = set()
        for pid in [server.process.pid] + cases.children_of(server.process.pid):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                sockets |= set(re.findall(r"socket:\[(\d+)\]", target))
        listening = []
        for table in ("tcp", "tcp6"):
            with open(f"/proc/net/{table}", encoding="ascii") as file:
                for line in file.readlines()[1:]:
                    words = line.split()
                    if words[3] == "0A" and words[9] in sockets:
                        listening.append(words[1])
        self.assertEqual(listening, [f"0100007F:{server.port:04X}"])


class Debuggers(Serving):
    def test_one_that_is_gone_in_mid_read_costs_nothing(self):
        server, debugger = self.recording("--multi", "127.0.0.1:0", TALKS)
        self.assertTrue(debugger.ask("qXfer:btrace:read:all:0,10").startswith("m"))
        debugger.send("qXfer:btrace:read:all:10,1000")
        debugger.close()
        second = self.connect(server)
        second.greet()
        thread = re.search(r"thread:([^;]+);", second.ask("?"))[1]
        self.assertEqual(second.ask("Hg" + thread), "OK")
        self.assertIn("<bts size=", second.ask("qXfer:btrace-conf:read::0,1000"))
        self.assertIn("<block", second.ask("qXfer:btrace:read:all:0,1000"))

    def test_one_that_is_gone_while_the_program_runs_finds_it_stopped(self):
        server = self.serve("--multi", "127.0.0.1:0", TALKS)
        first = self.connect(server)
        first.greet()
        first.ask("?")
        first.send("vCont;c")
        first.close()
        second = self.connect(server)
        second.greet()
        self.assertRegex(second.ask("?"), "^T")

    def test_each_is_served_although_nobody_reads_what_the_server_says(self):
        server = self.serve("--multi", "127.0.0.1:0", TALKS)
        with open(f"/proc/{server.process.pid}/fd/2", "wb", buffering=0) as said:
            os.set_blocking(said.fileno(), False)
            while said.write(b"." * select.PIPE_BUF) is not None:
                pass
        for _ in range(3):
            debugger = self.connect(server)
            debugger.greet()
            self.assertRegex(debugger.ask("?"), "^T")
            debugger.close()

    def test_one_that_comes_after_lldb_is_told_nothing_of_lldbs_trace(self):
        server = self.serve("--multi", "127.0.0.1:0", RELAY)
        lldb = self.connect(server)
        lldb.greet("xmlRegisters=i386,arm,mips,arc")
        thread = re.search(r"thread:([^;]+);", lldb.ask("?"))[1]
        self.assertEqual(lldb.ask("Hg" + thread), "OK")
        limited = ('jLLDBTraceStart:{"type":"intel-pt","tids":null,"iptTraceSize":4096,'
                   '"processBufferSizeLimit":4096,"enableTsc":false}]')
        self.assertEqual(lldb.ask(limited), "OK")
        lldb.close()
        debugger = self.connect(server)
        debugger.greet()
        debugger.ask("?")
        # The program makes a thread, for which that trace has no room.
        self.assertRegex(debugger.ask("vCont;c"), "^W0")

    def test_an_interrupt_right_behind_the_request_to_run_stops_the_program(self):
        debugger = self.connect(self.serve("127.0.0.1:0", ROUNDS, "-1"))
        debugger.greet()
        debugger.ask("?")
        for request in ("vCont;c", "c"):
            debugger.send_raw(rsp.frame(request) + b"\x03")
            while (stop := debugger.packet()).startswith("O"):
                pass
            self.assertRegex(stop, "^T0[25]")

    def test_an_interrupt_between_two_steps_stops_the_program(self):
        _, debugger = self.recording("127.0.0.1:0", ROUNDS, "-1")
        thread = re.search("thread:([^;]+);", debugger.ask("?"))[1]
        for _ in range(10):
            debugger.send_raw(b"\x03")
            self.assertRegex(debugger.ask(f"vCont;s:{thread}"), f"^T02thread:{thread};")
            self.assertRegex(debugger.ask(f"vCont;s:{thread}"), "^T05")
        # A signal that is brought along is delivered all the same.
        debugger.send_raw(b"\x03")
        self.assertRegex(debugger.ask(f"vCont;C0f:{thread};c"), "^X0?f")

    def test_packets_that_are_none(self):
        _, debugger = self.recording("127.0.0.1:0", TALKS)
        for packet in ("", "Q", "qXfer", "qXfer:btrace", "qXfer:btrace:read:all:0", "vCont;",
                       "vCont;x", "vCont;s:p", "Hgxyz", "Hg", "qRcmd,", "qRcmd,0", "m", "m0",
                       "M0,1", "X0,1:", "Z0", "z9,0,0", "vRun", "vRun;zz", "D;zz", "vKill;",
                       "qThreadExtraInfo,", "QPassSignals:zz;;", "qSupported:;;=;+;?",
                       "\x80\xff}", "}" * 1000):
            with self.subTest(packet[:20]):
                self.assertIsInstance(debugger.ask(packet.encode("latin-1")), str)
        self.assertIn("<bts size=", debugger.ask("qXfer:btrace-conf:read::0,1000"))

    def test_trace_packets_that_are_none(self):
        _, debugger = self.recording("127.0.0.1:0", TALKS)
        for packet, answer in (
                ("Qbtrace:", "E.Bad Qbtrace operation.  Use bts, pt, or off."),
                ("Qbtrace:lbr", "E.Bad Qbtrace operation.  Use bts, pt, or off."),
                ("Qbtrace:bts", "E.Btrace already enabled."),
                ("Qbtrace:pt", "E.Btrace already enabled."),
                ("qXfer:btrace:read:some:0,1000", "E.Bad annex."),
                ("qXfer:btrace-conf:read:x:0,1000", "E.Bad annex."),
                ("Qbtrace-conf:bts", "E.Bad Qbtrace configuration option."),
                ("Qbtrace-conf:lbr:size=0x10", "E.Bad Qbtrace configuration option."),
                ("Qbtrace-conf:bts:size=", "E.Bad size value."),
                ("Qbtrace-conf:bts:size=-1", "E.Bad size value."),
                ("Qbtrace-conf:pt:size=0x100000000", "E.Bad size value."),
                ("Qbtrace-conf:pt:size=0x" + "f" * 40, "E.Bad size value.")):
            with self.subTest(packet):
                self.assertEqual(debugger.ask(packet), answer)

    def test_sizes_at_the_ends_of_what_is_allowed(self):
        for size in ("0x0", "0x1", "0xffffffff"):
            with self.subTest(size):
                server = self.serve("127.0.0.1:0", TALKS)
                debugger = self.connect(server)
                debugger.greet()
                thread = re.search(r"thread:([^;]+);", debugger.ask("?"))[1]
                self.assertEqual(debugger.ask("Hg" + thread), "OK")
                self.assertEqual(debugger.ask("Qbtrace-conf:bts:size=" + size), "OK")
                self.assertEqual(debugger.ask("Qbtrace:bts"), "OK")
                debugger.ask(f"vCont;s:{thread}")
                self.assertIn("<block", debugger.ask("qXfer:btrace:read:all:0,1000"))
                server.close()

    def test_reads_at_the_ends_of_what_is_allowed(self):
        _, debugger = self.recording("127.0.0.1:0", TALKS)
        whole = debugger.ask("qXfer:btrace:read:all:0,ffffffffffffffff")
        self.assertRegex(whole, r"(?s)^l<!DOCTYPE.*</btrace>\n$")
        self.assertEqual(debugger.ask("qXfer:btrace:read:all:0,0"), "m")
        self.assertEqual(debugger.ask(f"qXfer:btrace:read:all:{len(whole) - 1:x},10"), "l")
        self.assertEqual(debugger.ask("qXfer:btrace:read:all:ffffffffffffffff,10"), "l")
        self.assertEqual(debugger.ask(f"qXfer:btrace:read:all:{len(whole) - 2:x},10"), "l\n")

    def test_a_packet_that_never_ends(self):
        server = self.serve("--multi", "127.0.0.1:0", TALKS)
        debugger = self.connect(server)
        with self.assertRaises((rsp.Gone, ConnectionError)):
            for _ in range(64):
                debugger.send_raw(b"$" + b"x" * (1 << 20))
            while True:
                debugger.byte()
        self.assertIn("PacketSize", self.connect(server).greet())

    def test_a_packet_with_a_wrong_sum_is_asked_for_again(self):
        debugger = self.connect(self.serve("127.0.0.1:0", TALKS))
        debugger.send_raw(b"$?#00")
        self.assertEqual(debugger.byte(), b"-")
        self.assertRegex(debugger.ask("?"), "^T")


class ThreadsUnderQemu(cases.CommandCase):
    def setUp(self):
        """One thread stands behind its trap, in a loop: three instructions of one byte, and a jump
        back. Another one has all stand still again and again."""
        cases.needs_engine(self, "qemu")
        server = rsp.Server("--once", "--engine=qemu", "127.0.0.1:0", SPLITS_LOCKS)
        self.addCleanup(server.close)
        self.debugger = rsp.Debugger(server.port)
        self.addCleanup(self.debugger.close)
        self.debugger.greet()
        stop = self.debugger.ask("vCont;c")
        self.thread = re.search(r"^T05.*thread:([^;]+);", stop)[1]

    def pc(self):
        return int.from_bytes(bytes.fromhex(self.debugger.ask("g")[256:272]), "little")

    def test_steps_are_taken_while_another_thread_has_all_stand_still(self):
        begin = self.pc()
        for others in ("", ";c"):  # stand, as far as they can, or run
            for i in range(1, 101):
                stop = self.debugger.ask(f"vCont;s:{self.thread}{others}")
                self.assertRegex(stop, f"^T05thread:{self.thread};$")
                self.assertEqual(self.pc() - begin, i % 4, f"step {i}{others}")

    def test_breakpoint_of_one_that_was_not_to_run_is_not_told(self):
        self.assertEqual(self.debugger.ask(f"Z0,{self.pc() + 1:x},1"), "OK")
        threads = self.debugger.ask("qfThreadInfo")[1:].split(",")
        other = next(one for one in threads if one != self.thread)
        for _ in range(20):
            self.debugger.send_raw(rsp.frame(f"vCont;c:{other}") + b"\x03")
            self.assertRegex(self.debugger.packet(), "^T02")


class ServerBelow(cases.CommandCase):
    """Cases with a server below that is made to fail."""

    def serve(self, **plan):
        env = dict(os.environ, FAKE_GDBSERVER=json.dumps(plan))
        server = rsp.Server("--engine=step", f"--gdbserver={HERE}/fake_gdbserver.py",
                            "127.0.0.1:0", TALKS, env=env)
        self.addCleanup(server.close)
        return server

    def connect(self, server):
        debugger = rsp.Debugger(server.port)
        self.addCleanup(debugger.close)
        return debugger

    def test_answers_nobody_who_did_not_ask(self):
        with tempfile.TemporaryDirectory() as folder:
            late = os.path.join(folder, "late")
            os.mkfifo(late)
            server = self.serve(answers={"m1000,2": f"file:{late}", "m2000,2": "beef"})
            first = self.connect(server)
            first.send("m1000,2")
            self.assertEqual(first.byte(), b"+")
            first.close()
            second = self.connect(server)
            second.send("m2000,2")
            self.assertEqual(second.byte(), b"+")
            with open(late, "w", encoding="ascii") as file:
                file.write("dead")
            self.assertEqual(second.packet(), "beef")

    def test_dies_while_the_program_runs(self):
        server = self.serve(answers={"vCont;c": "exit:3"})
        debugger = self.connect(server)
        debugger.greet()
        debugger.send("vCont;c")
        told = debugger.packet()
        self.assertIn("the server below has ended (status 3)", bytes.fromhex(told[1:]).decode())
        self.assertEqual(debugger.packet(), "X09")
        self.assertEqual(server.wait(), 3)

    def test_dies_when_it_is_asked(self):
        server = self.serve(answers={"qOffsets": "exit:4"})
        debugger = self.connect(server)
        debugger.greet()
        self.assertEqual(debugger.ask("qOffsets"),
                         "E.tailtrace: the server below has ended (status 4)")
        self.assertEqual(server.wait(), 4)

    def test_dies_when_we_ask_it(self):
        server = self.serve(answers={"qSupported": "exit:5"})
        with self.assertRaises(rsp.Gone):
            self.connect(server).greet()
        self.assertEqual(server.wait(), 5)

    def test_ends_of_single_threads_are_not_offered(self):
        server = self.serve(answers={"qSupported": "QThreadOptions=7"})
        self.assertNotIn("QThreadOptions", self.connect(server).greet())

    def test_answers_no_more_and_sigterm_is_heard(self):
        server = self.serve(answers={"qSupported": None, "qRcmd," + b"exit".hex(): None})
        family = cases.children_of(server.process.pid)
        debugger = self.connect(server)
        debugger.stop_acks()
        debugger.send("qSupported:multiprocess+")
        debugger.send("?")
        server.process.terminate()
        self.assertEqual(server.wait(), ENDED_BY_SIGTERM)
        for pid in family:
            cases.wait_until_gone(pid)

    def test_without_descriptors_for_a_debugger_takes_no_processor_and_serves_it_later(self):
        server = self.serve(answers={})
        pid = server.process.pid
        # Sanitizers open pipes themselves for what it has not done before.
        first = self.connect(server)
        first.ask("!")
        first.close()
        while not server.process.stderr.readline().startswith("Listening on port"):
            self.assertIsNone(server.process.poll())
        used = {int(number) for number in os.listdir(f"/proc/{pid}/fd")}
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        none_left = min(set(range(len(used) + 1)) - used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (none_left, limits[1]))
        debugger = self.connect(server)
        cases.wait_for_sleeps(pid, 4)
        self.assertEqual(select.select([debugger.socket], [], [], 0)[0], [])
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        debugger.greet()

    def test_speaks_rubbish(self):
        for raw in ("$T05thread:#00", "$*#2a", "$0*#5a", "%#00", "$T05thread:p1.1;10:zz;#00\xff",
                    "$x*~#00$#00", "#00", "$E01#a6$E01#a6$E01#a6"):
            with self.subTest(raw):
                server = self.serve(raw={"?": raw, "qC": raw})
                debugger = self.connect(server)
                debugger.greet()
                debugger.send("?")
                debugger.send("Qbtrace:pt")
                server.process.terminate()
                self.assertEqual(server.wait(), ENDED_BY_SIGTERM)

    def test_a_stop_that_comes_with_an_answer_to_us_is_fetched(self):
        stop = rsp.frame("Stop:T05thread:p1.1;").decode().replace("$", "%")
        done = rsp.frame("OK").decode()
        # More at once than are dealt with in one turn; the last one comes while nobody listens.
        server = self.serve(answers={"QNonStop:1": "OK", "vStopped": "exit:6"},
                            raw={"qOffsets": rsp.frame("").decode() + 17 * stop,
                                 "vStopped": 16 * [done] + [done + stop]})
        debugger = self.connect(server)
        debugger.greet()
        debugger.ask("QNonStop:1")
        self.assertEqual(debugger.ask("qOffsets"), "")
        self.assertEqual(server.wait(), 6)

    def test_selecting_a_thread_that_is_gone_selects_no_other(self):
        server = self.serve(answers={"Hgp64.64": "OK", "Hgp64.65": "E01", "g": "0" * 1088,
                                     "Z0,1,1": "OK"})
        debugger = self.connect(server)
        debugger.greet()
        self.assertEqual(debugger.ask("Hgp64.64"), "OK")
        self.assertEqual(debugger.ask("Qbtrace:pt"), "OK")
        self.assertEqual(debugger.ask("Hgp64.65"), "E01")
        self.assertEqual([debugger.ask(f"Qbtrace:{word}") for word in ("pt", "off")], ["OK", "OK"])
        self.assertEqual(debugger.ask("qXfer:btrace-conf:read::0,1000"), "E.No such thread.")
        self.assertEqual(debugger.ask("Hgp64.64"), "OK")
        self.assertEqual(debugger.ask("Qbtrace:pt"), "E.Btrace already enabled.")


cases.for_each_engine(globals(), TheEnd, Network, Debuggers)
cases.for_each_engine(globals(), KeptByTheServer, engines=("step",))

if __name__ == "__main__":
    cases.main()
