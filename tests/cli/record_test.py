"""`tailtrace run --no-debugger`: a program recorded to its end, and the recording left behind."""

import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

import cases

TALKS = os.path.join(cases.BINARY_DIR, "tests/programs/talks")


class Record(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = dict(os.environ, XDG_STATE_HOME=self.folder)

    def record(self, text, *options, program=(TALKS,)):
        return subprocess.run([cases.TAILTRACE, "run", "--no-debugger", *options, "--", *program],
                              input=text, capture_output=True, text=True, timeout=cases.HANG_S,
                              check=False, env=self.env)

    def history(self, session):
        outcome = cases.tailtrace("history", "--json", session, "-100,-1")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return json.loads(outcome.stdout)

    def test_program_is_what_it_would_be_without_us(self):
        outcome = self.record("hello\nstatus 9\n")
        self.assertEqual(outcome.returncode, 9)
        self.assertEqual(outcome.stdout, "ready\nheard: hello\n")
        self.assertTrue(outcome.stderr.startswith("complained\nrecorded: "), outcome.stderr)

    def test_starts_by_a_link_that_lies_anywhere(self):
        link = os.path.join(self.folder, "tailtrace-link")
        os.symlink(cases.TAILTRACE, link)
        outcome = subprocess.run([link, "run", "--no-debugger", "--", "true"], env=self.env,
                                 capture_output=True, timeout=cases.HANG_S, check=False)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)

    def test_programs_have_their_own_names(self):
        say = "read name < /proc/self/comm; echo $name"
        outcome = self.record("", program=["/bin/sh", "-c", f"{say}; exec cat /proc/self/comm"])
        self.assertEqual(outcome.stdout, "sh\ncat\n", outcome.stderr)

    def test_signal_that_ended_it_is_the_exit_status(self):
        self.assertEqual(self.record("signal 15\n").returncode, 128 + 15)

    def test_recordings_are_numbered_and_only_for_their_owner(self):
        for number in (1, 2):
            outcome = self.record("")
            session = os.path.join(self.folder, "tailtrace", f"talks.{number}")
            self.assertIn(f"recorded: tailtrace history {session}\n", outcome.stderr)
            for folder in (session, os.path.dirname(session)):
                self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700, folder)
            for path in glob.glob(session + "/*/*"):
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)

    def test_named_command_shows_how_it_ended(self):
        for options in ((), (f"--keep={self.folder}/it's kept",),
                        (f"--keep={self.folder}/deep/er/",)):
            outcome = self.record("status 3\n", *options)
            command = re.search(r"recorded: tailtrace (.*)\n", outcome.stderr)[1]
            shown = cases.tailtrace(*shlex.split(command))
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("_exit", shown.stdout)

    def test_shows_the_program_that_a_process_became(self):
        outcome = self.record("", program=["/bin/sh", "-c", f"exec {TALKS}"])
        session = re.search(r"recorded: tailtrace history (.*)\n", outcome.stderr)[1]
        self.assertEqual(len(glob.glob(session + "/*.*")), 2)
        for options in ([], [f"--thread={os.path.basename(glob.glob(session + '/*.0')[0])[:-2]}"]):
            shown = cases.tailtrace("history", *options, session, "all")
            self.assertIn("talks.c", shown.stdout, shown.stderr)

    def test_each_program_that_a_process_executed_can_be_asked(self):
        session, saved = (os.path.join(self.folder, name) for name in ("kept", "saved"))
        self.record("", "--keep=" + session, program=["/bin/sh", "-c", f"exec {TALKS}"])
        cases.tailtrace("save", session, saved)
        with open(os.path.join(saved, "bundle.json"), encoding="utf-8") as file:
            files = [module["path"] for module in json.load(file)["modules"]]
        self.assertIn(TALKS, files)
        self.assertFalse([path for path in files if "qemu" in path], "and none of qemu's own")
        for recording in (session, saved):
            told = json.loads(cases.tailtrace("info", "--json", recording).stdout)["threads"]
            self.assertEqual([thread["program"] for thread in told], [1, 2])
            pid, tid = told[0]["pid"], told[0]["tid"]
            for number, place, other in ((1, "execve", "main"), (2, "main", "execve")):
                why = cases.tailtrace("why", recording, place)
                self.assertEqual(why.returncode, 0, why.stderr)
                self.assertIn(f"thread {pid}.{tid}#{number} of 2 was there last", why.stderr)
                for thread in (f"{tid}#{number}", f"{pid}.{tid}#{number}"):
                    hits = cases.tailtrace("hits", "--thread=" + thread, recording, place)
                    self.assertEqual(hits.returncode, 0, hits.stderr)
                calls = cases.tailtrace("calls", f"--thread={tid}#{number}", recording, other)
                self.assertNotEqual(calls.returncode, 0, calls.stdout)

    def test_one_that_is_asked_to_end_asks_the_program(self):
        session = os.path.join(self.folder, "kept")
        # To wait in a `read` would not do: dash may miss what comes right before it.
        asked = 'trap "echo asked; exit 3" TERM HUP; echo ready; while :; do sleep 0.1; done'
        for number in (signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([cases.TAILTRACE, "run", "--no-debugger", "--keep=" + session,
                                   "--", "/bin/sh", "-c", asked], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as process:
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                process.wait(cases.HANG_S)
                out, err = process.stdout.read(), process.stderr.read()
            self.assertEqual((process.returncode, out), (3, "asked\n"))
            self.assertIn(f"recorded: tailtrace history {session}\n", err)
            shutil.rmtree(session)

    def test_killed_program_leaves_its_last_instructions(self):
        session = os.path.join(self.folder, "kept")
        with subprocess.Popen([cases.TAILTRACE, "run", "--no-debugger", "--keep=" + session, "--",
                               TALKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            process.stdin.write("spin\n")
            process.stdin.flush()
            while process.stdout.readline() != "spinning\n":
                pass
            pid = int(os.listdir(session)[0].split(".")[0])
            self.wait_until_it_spins(pid)
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(process.wait(cases.HANG_S), 128 + signal.SIGKILL)
        items = self.history(session)["items"]
        # The loop of `spin`, round and round, is all that the newest instructions are.
        self.assertEqual({item.get("function") for item in items}, {"main"})
        self.assertEqual(len(items), 100)

    def test_crashed_thread_comes_first_and_ends_where_it_crashed(self):
        session = os.path.join(self.folder, "kept")
        program = os.path.join(os.path.dirname(TALKS), "crashes_in_thread")
        outcome = self.record("", "--keep=" + session, program=(program,))
        self.assertEqual(outcome.returncode, 128 + signal.SIGSEGV)
        first, *others = json.loads(cases.tailtrace("info", "--json", session).stdout)["threads"]
        self.assertEqual(first["state"], "killed by SIGSEGV")
        self.assertEqual([thread["state"] for thread in others], ["killed", "exited", "exited"])
        # `if (value < 0) return;` is behind it, and the store to nowhere next.
        last = self.history(session)["items"][-1]
        self.assertEqual((last["function"], last["line"]), ("store", 9))

    def build(self, function):
        """A program with such a function, always at one path."""
        program = os.path.join(self.folder, "program")
        source = f"int __attribute__((noinline)) {function}(void) {{ return 1; }}\n" \
                 f"int main(void) {{ return {function}() - 1; }}\n"
        with contextlib.suppress(FileNotFoundError):
            os.remove(program)
        subprocess.run(["gcc", "-g", "-Wl,--build-id", "-xc", "-", "-o", program], input=source,
                       text=True, check=True)
        return program

    @unittest.skipUnless(shutil.which("gcc"), "no gcc")
    def test_no_names_are_taken_from_a_program_that_was_built_anew(self):
        session, saved = (os.path.join(self.folder, name) for name in ("kept", "saved"))
        self.record("", "--keep=" + session, program=(self.build("older"),))
        found = cases.tailtrace("hits", session, "older")
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.build("newer")
        outcome = cases.tailtrace("save", session, saved)
        self.assertIn("cannot name the functions of 1 file(s)", outcome.stderr)
        with open(os.path.join(saved, "trace.json"), encoding="utf-8") as file:
            self.assertNotIn(self.folder + "/program", file.read(), "LLDB would take names from it")
        for recording in (session, saved):
            found = cases.tailtrace("hits", recording, "newer")
            self.assertNotEqual(found.returncode, 0, found.stdout)
            self.assertRegex(found.stderr, r"program has the build id \w+ here, and had \w+")
        self.build("older")
        for recording in (session, saved):
            found = cases.tailtrace("hits", recording, "older")
            self.assertEqual((found.returncode, found.stderr), (0, ""))

    def wait_until_it_spins(self, pid):
        """Until it has used processor time since it said that it would."""
        def ticks():
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return int(file.read().rpartition(")")[2].split()[11])
        before = ticks()
        while ticks() < before + 2:
            os.sched_yield()


if __name__ == "__main__":
    cases.main()
