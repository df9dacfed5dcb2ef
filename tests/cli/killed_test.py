"""Of a program that somebody else kills the debugger is told, whichever of its threads was about to
make a step."""

import os
import re
import signal

import cases
import rsp

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/naps_in_threads")


class Killed(cases.EngineCase):
    def test_the_end_is_told(self):
        server = rsp.Server(f"--engine={self.engine}", "--once", "127.0.0.1:0", PROGRAM)
        self.addCleanup(server.close)
        debugger = rsp.Debugger(server.port)
        self.addCleanup(debugger.close)
        debugger.greet("no-resumed+")
        pid = int(re.search("^T05.*thread:p([^.]+)", debugger.ask("vCont;c"))[1], 16)
        for thread in debugger.ask("qfThreadInfo")[1:].split(","):
            self.assertEqual(debugger.ask("Hg" + thread), "OK")
            self.assertEqual(debugger.ask("Qbtrace:bts"), "OK")
        debugger.send(f"vCont;c:p{pid:x}.-1")
        cases.wait_for_sleeps(pid, 200)  # as when it stops behind a step
        os.kill(pid, signal.SIGKILL)
        # gdbserver does not always survive it, which the user is told before.
        while (told := debugger.packet()).startswith("O"):
            continue
        self.assertRegex(told, f"^X0?9(;process:{pid:x})?$")


cases.for_each_engine(globals(), Killed)

if __name__ == "__main__":
    cases.main()
