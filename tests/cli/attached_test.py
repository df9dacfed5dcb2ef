"""`tailtrace serve --attach` to a program that leads no process group: it goes on when the server
has ended."""

import os
import signal
import subprocess

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


if __name__ == "__main__":
    cases.main()
