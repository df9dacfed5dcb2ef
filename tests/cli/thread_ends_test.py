"""A thread of qemu's that ends gives back memory that its gdb stub writes to behind each stop."""

import os
import shutil
import tempfile
import unittest

import cases
import rsp

TESTS = os.path.join(cases.BINARY_DIR, "tests")
TICKS = os.path.join(TESTS, "programs", "ticks_in_threads")
THREADS = 4
SIGALRM = "0e"  # GDB's number


@unittest.skipUnless(shutil.which("qemu-x86_64"), "no qemu")
@unittest.skipIf(cases.IS_SANITIZED, "a sanitizer's library must come before all others")
class ThreadEnds(unittest.TestCase):
    def serve(self):
        """Under a qemu with a library of ours in it."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        qemu = os.path.join(folder, "qemu")
        with open(qemu, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nLD_PRELOAD={TESTS}/libwatches_freed.so exec "
                       f"{shutil.which('qemu-x86_64')} \"$@\"\n")
        os.chmod(qemu, 0o755)
        server = rsp.Server("--engine=qemu", "127.0.0.1:0", TICKS,
                            env=dict(os.environ, TAILTRACE_QEMU=qemu))
        self.addCleanup(server.close)
        return server

    def test_nobody_writes_to_what_it_gave_back(self):
        server = self.serve()
        debugger = rsp.Debugger(server.port)
        self.addCleanup(debugger.close)
        debugger.greet()
        self.assertEqual(debugger.ask("QPassSignals:" + SIGALRM), "OK")
        self.assertRegex(debugger.ask("vCont;c"), "^W00")
        debugger.close()
        server.wait()
        self.assertEqual([line for line in server.said if line.startswith("memory")],
                         ["memory given back: untouched\n"] * THREADS)


if __name__ == "__main__":
    cases.main()
