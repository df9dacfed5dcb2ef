"""`tailtrace doctor` on this very machine, against what other tools say of it."""

import json
import os
import shutil
import subprocess
import tempfile

import cases
from terminal import Terminal


def first_line(*command):
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    return outcome.stdout.splitlines()[0]


class Doctor(cases.CommandCase):
    def diagnose(self, status, **options):
        outcome = cases.tailtrace("doctor", "--json", **options)
        self.assertEqual(outcome.returncode, status, outcome.stderr)
        self.assertEqual(outcome.stderr, "")
        document = json.loads(outcome.stdout)
        self.assertEqual(document["schema"], "tailtrace.doctor/1")
        return document

    def with_tools(self, *names):
        """An environment whose PATH has these programs only."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        for name in names:
            os.symlink(shutil.which(name), os.path.join(folder, name))
        return dict(os.environ, PATH=folder)

    def engine(self, document, name):
        return next(engine for engine in document["engines"] if engine["name"] == name)

    def ptrace_or_skip(self):
        strace = shutil.which("strace") and subprocess.run(
            ["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
        if strace and strace.returncode != 0:
            self.skipTest("ptrace is not permitted here")

    def test_facts_are_the_systems(self):
        machine = self.diagnose(0)["machine"]
        self.assertEqual(machine["kernel"], os.uname().release)
        self.assertEqual(machine["processor"]["count"], os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertEqual(sorted(machine["pmus"]),
                         sorted(os.listdir("/sys/bus/event_source/devices")))

    def test_versions_are_the_tools_own(self):
        tools = self.diagnose(0)["tools"]
        for name in ("gdb", "gdbserver", "qemu-x86_64"):
            self.assertEqual(tools[name]["path"], shutil.which(name))
            if tools[name]["path"]:
                self.assertIn(tools[name]["version"], first_line(name, "--version"))
                self.assertRegex(tools[name]["version"], r"^\d+\.\d+")

    def test_lldb_is_the_one_that_run_would_take(self):
        for name, version, taken in (("lldb-22", "22.1.8", True), ("lldb-15", "15.0.7", True),
                                     ("lldb", "14.0.6", False)):
            with self.subTest(name):
                env = self.with_tools()
                tool = os.path.join(env["PATH"], name)
                with open(tool, "w", encoding="ascii") as file:
                    file.write("#!/bin/sh\necho once >>$0.runs\n"
                               f"echo lldb version {version}\n")
                os.chmod(tool, 0o755)
                document = self.diagnose(3, env=env)
                with open(tool + ".runs", encoding="ascii") as file:  # it is slow to start
                    self.assertEqual(file.read(), "once\n")
                verdict = next(one for one in document["besides"] if one["name"] == "lldb")
                self.assertEqual(verdict["works"], taken)
                if taken:
                    self.assertEqual(document["tools"]["lldb"]["path"], tool)
                    self.assertEqual(document["tools"]["lldb"]["version"], version)
                else:
                    self.assertIn("older than version 15", verdict["why"])
                    self.assertIn("lldb-22", verdict["fix"])

    def test_without_any_tool_no_engine_works_and_the_status_says_so(self):
        document = self.diagnose(3, env=self.with_tools())
        self.assertIsNone(document["auto"])
        self.assertEqual(self.engine(document, "qemu")["fix"], "sudo apt-get install qemu-user")
        self.assertEqual(self.engine(document, "step")["fix"], "sudo apt-get install gdbserver")

    def test_without_qemu_auto_steps(self):
        self.ptrace_or_skip()
        document = self.diagnose(0, env=self.with_tools("gdbserver"))
        self.assertEqual(document["auto"], "step")
        self.assertFalse(self.engine(document, "qemu")["works"])

    def test_text_marks_what_json_says_auto_takes(self):
        chosen = self.diagnose(0)["auto"]
        text = cases.tailtrace("doctor").stdout
        marked = [line.split()[0] for line in text.splitlines() if "<- auto" in line]
        self.assertEqual(marked, [chosen])
        self.assertNotIn("\x1b", text)

    def test_colour_is_an_option_and_carries_no_meaning(self):
        plain = cases.tailtrace("doctor").stdout
        painted = cases.tailtrace("doctor", "--color=always").stdout
        self.assertIn("\x1b[32myes\x1b[0m", painted)
        for code in ("\x1b[32m", "\x1b[31m", "\x1b[0m"):
            painted = painted.replace(code, "")
        self.assertEqual(painted, plain)

    def test_colour_is_for_terminals_that_say_what_they_are(self):
        for kind in ("xterm", "dumb", ""):
            with self.subTest(kind):
                terminal = Terminal(cases.TAILTRACE, "doctor", TERM=kind)
                self.addCleanup(terminal.close)
                terminal.expect("<- auto")
                self.assertEqual("\x1b[3" in terminal.text, kind == "xterm")

    def test_arguments_it_does_not_know_are_usage_errors(self):
        self.assert_error(cases.tailtrace("doctor", "--nonsense"), 2,
                          "cannot understand the arguments of tailtrace doctor", "--nonsense",
                          "tailtrace help doctor")


if __name__ == "__main__":
    cases.main()
