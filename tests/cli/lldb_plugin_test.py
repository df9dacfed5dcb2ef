"""LLDB's plugin while a question takes long: Ctrl-C ends it, and progress events tell of it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debuggers"))
import lldb_stock  # noqa: E402

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


class WhileItTakesLong(cases.CommandCase):
    def setUp(self):
        super().setUp()
        plugin = lldb_stock.plugin(cases.TAILTRACE)
        if lldb_stock.why_not() or not plugin.is_file():
            self.skipTest(lldb_stock.why_not() or "the plugin was not built")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
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
        self.assertRegex(said, r"PROGRESS .*'tailtrace: info'")
        self.assertRegex(said, r"(?m)^42$")


if __name__ == "__main__":
    cases.main()
