"""`tailtrace serve --attach` to a program that leads no process group: it goes on when the server
has ended. And what becomes of that server when its program has."""

import os
import signal
import subprocess
import tempfile

import cases
import rsp

ROUNDS = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")


class Attached(cases.CommandCase):
    def setUp(self):
        self.program = subprocess.Popen([ROUNDS, "-1"], stdout=subprocess.DEVNULL)
        self.addCleanup(self.program.wait)
        self.addCleanup(self.program.kill)
        self.assertNotEqual(os.getpgid(self.program.pid), self.program.pid)
        self.server = rsp.Server("--engine=step", "--attach", "127.0.0.1:0", str(self.program.pid))
        self.addCleanup(self.server.close)
        self.debugger = rsp.Debugger(self.server.port)
        self.addCleanup(self.debugger.close)
        self.debugger.greet()
        self.debugger.ask("?")

    def assert_goes_on(self):
        self.server.process.terminate()
        self.assertEqual(self.server.wait(), 128 + signal.SIGTERM)
        cases.assert_let_go(self, self.program)

    def test_that_is_interrupted_and_runs(self):
        self.debugger.send_raw(rsp.frame("vCont;c") + b"\x03")
        self.assertRegex(self.debugger.packet(), "^T02")
        self.debugger.send("vCont;c")
        self.assert_goes_on()

    def test_that_stands_at_a_breakpoint(self):
        pc = int.from_bytes(bytes.fromhex(self.debugger.ask("g")[256:272]), "little")
        self.assertEqual(self.debugger.ask(f"Z0,{pc:x},1"), "OK")
        self.assertRegex(self.debugger.ask("vCont;c"), "^T05")
        self.assert_goes_on()

    def test_beside_one_that_has_ended(self):
        pc = int.from_bytes(bytes.fromhex(self.debugger.ask("g")[256:272]), "little")
        self.assertEqual(self.debugger.ask(f"Z0,{pc:x},1"), "OK")
        self.assertEqual(self.debugger.ask("!"), "OK")
        with subprocess.Popen("read end", shell=True, stdin=subprocess.PIPE) as other:
            self.assertRegex(self.debugger.ask(f"vAttach;{other.pid:x}"), "^T")
            other.stdin.close()
            ended = self.debugger.ask(f"vCont;c:p{other.pid:x}.-1")
            self.assertRegex(ended, f"^W.*;process:{other.pid:x}$")
        self.assert_goes_on()


class Ended(cases.CommandCase):
    def test_the_server_below_ends_by_itself_then(self):
        with tempfile.TemporaryDirectory() as folder:
            below, status = os.path.join(folder, "below"), os.path.join(folder, "status")
            with open(below, "w", encoding="ascii") as script:
                script.write(f"""#!/bin/sh\ngdbserver "$@"\necho $? >{status}\n""")
            os.chmod(below, 0o700)
            server = rsp.Server("--engine=step", f"--gdbserver={below}", "127.0.0.1:0", "/bin/true")
            self.addCleanup(server.close)
            debugger = rsp.Debugger(server.port)
            self.addCleanup(debugger.close)
            debugger.greet()
            debugger.ask("?")
            pc = int.from_bytes(bytes.fromhex(debugger.ask("g")[256:272]), "little")
            self.assertRegex(debugger.ask("vCont;s"), "^T05")
            self.assertEqual(debugger.ask(f"Z0,{pc:x},1"), "OK")
            self.assertRegex(debugger.ask("vCont;c"), "^W0;")
            debugger.close()
            self.assertEqual(server.wait(), 0)
            with open(status, encoding="ascii") as file:
                self.assertEqual(file.read(), "0\n")


if __name__ == "__main__":
    cases.main()
