"""Signals that a debugger wants passed on (`QPassSignals`) reach a program under qemu without a
stop that is told."""

import os
import re
import shutil
import unittest

import cases
import rsp

SIGNALS = os.path.join(cases.BINARY_DIR, "tests", "programs", "signals")
# GDB's numbers: SIGUSR1, SIGUSR2, SIGILL, SIGFPE, SIGSEGV.
SENT, FAULTS = ("1e", "1f"), ("4", "8", "b")
TRAP = "T05"


@unittest.skipUnless(shutil.which("qemu-x86_64"), "no qemu")
class PassedSignals(unittest.TestCase):
    def setUp(self):
        server = rsp.Server("--engine=qemu", "127.0.0.1:0", SIGNALS)
        self.addCleanup(server.close)
        self.debugger = rsp.Debugger(server.port)
        self.addCleanup(self.debugger.close)
        self.debugger.greet()
        stop = self.debugger.ask("?")
        self.thread = re.search("thread:([^;]+);", stop)[1]

    def assert_next_is_the_end(self, signal):
        self.assertRegex(self.debugger.ask(f"vCont;C{signal}:{self.thread};c"), "^W00")

    def test_the_program_has_them_without_a_stop(self):
        self.assertEqual(self.debugger.ask("QPassSignals:" + ";".join(SENT + FAULTS)), "OK")
        self.assertTrue(self.debugger.ask("vCont;c").startswith(TRAP))  # its own
        self.assert_next_is_the_end("05")

    def test_one_that_steps_tells_of_them(self):
        self.assertEqual(self.debugger.ask("QPassSignals:" + ";".join(FAULTS)), "OK")
        self.assertRegex(self.debugger.ask("vCont;c"), "^T1e")
        self.assertEqual(self.debugger.ask("QPassSignals:" + ";".join(SENT + FAULTS)), "OK")
        stop = self.debugger.ask(f"vCont;S1e:{self.thread};c")
        while stop.startswith(TRAP):  # up to the next signal
            stop = self.debugger.ask(f"vCont;s:{self.thread};c")
        self.assertRegex(stop, "^T1f")


if __name__ == "__main__":
    cases.main()
