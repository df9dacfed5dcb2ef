"""Of a program that somebody else kills the debugger is told, whichever of its threads was about to
make a step."""

import json
import os
import re
import signal
import unittest

import cases
import rsp

HERE = os.path.dirname(os.path.abspath(__file__))
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
        self.assertRegex(debugger.packet(), f"^X0?9(;process:{pid:x})?$")


class ServerBelow(unittest.TestCase):
    """gdbserver does not survive to be asked twice for the step of a thread that is gone."""

    def test_is_asked_once(self):
        code = 0x401000
        threads = [f"p7fffffff.{tid}" for tid in (1, 2)]
        steps = [f"T0506:{0:016x};07:{0:016x};10:{(code + 1).to_bytes(8, 'little').hex()};"
                 f"thread:{thread};" for thread in threads]
        told = [*steps, "X09;process:7fffffff"]
        nops = {f"m{at:x},{size:x}": "90" * size
                for at, size in ((code, 15), (code + 1, 15), (code, 0x800), (code + 0x800, 0x800))}
        plan = {"answers": {"g": "00" * 128 + code.to_bytes(8, "little").hex(), **nops,
                            **{"Hg" + thread: "OK" for thread in threads},
                            **{"vCont;s:" + thread: "exit:1" for thread in threads}},
                "raw": {"vCont;s:p7fffffff.-1": [rsp.frame(one).decode() for one in told],
                        **{"vCont;s:" + one: [rsp.frame("N").decode()] for one in threads}}}
        server = rsp.Server("--engine=step", f"--gdbserver={HERE}/fake_gdbserver.py",
                            "127.0.0.1:0", PROGRAM, env=dict(os.environ,
                                                             FAKE_GDBSERVER=json.dumps(plan)))
        self.addCleanup(server.close)
        debugger = rsp.Debugger(server.port)
        self.addCleanup(debugger.close)
        debugger.greet("no-resumed+")
        for thread in threads:
            self.assertEqual(debugger.ask("Hg" + thread), "OK")
            self.assertEqual(debugger.ask("Qbtrace:bts"), "OK")
        debugger.send("vCont;c:p7fffffff.-1")
        self.assertEqual(debugger.packet(), "X09;process:7fffffff")


cases.for_each_engine(globals(), Killed)

if __name__ == "__main__":
    cases.main()
