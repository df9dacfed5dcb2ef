"""What cases need that ask about a recording: the program, and GDB on it as another witness."""

import json
import os
import re
import shutil
import subprocess
import tempfile

import cases

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/rounds.c")
PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/rounds")
ROUNDS = "3"
SIGNALS = os.path.join(cases.BINARY_DIR, "tests/programs/signals")
DETOURS = os.path.join(cases.BINARY_DIR, "tests/programs/detours")


class InFolder(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def record(self, program=PROGRAM, *arguments, name="session"):
        session = os.path.join(self.folder, name)
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + session, "--ring=1048576",
                                  "--", program, *(arguments or [ROUNDS]))
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return session

    def ask(self, verb, session, *words, status=0):
        outcome = cases.tailtrace(verb, "--json", session, *words)
        self.assertEqual(outcome.returncode, status, outcome.stderr)
        document = json.loads(outcome.stdout)
        self.assertEqual(document["schema"], f"tailtrace.{verb}/1")
        return document

    def gdb(self, *commands, program=PROGRAM, argument=ROUNDS):
        arguments = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
        for command in commands:
            arguments += ["-ex", command]
        return subprocess.run([*arguments, "--args", program, argument], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=cases.HANG_S,
                              check=False).stdout

    def hits_in_gdb(self, location, program=PROGRAM):
        cases.needs_engine(self, "step")  # GDB can run programs here
        text = self.gdb("break " + location, "ignore 1 1000000", "run", "info breakpoints",
                        program=program)
        hit = re.search(r"already hit (\d+) time", text)
        return int(hit[1]) if hit else 0
