"""perf.data files: perf itself decodes what is written, and what is written is read again."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cases

PERF = shutil.which("perf")
PROGRAMS = os.path.join(cases.BINARY_DIR, "tests/programs")


def step(name):
    """What a function is called, if it is one of those that libraries have in one place."""
    return name if name.endswith("_step") else ""


def executed(folder, thread):
    """The instructions of a thread, as `tailtrace history` has them: addresses, bytes, steps."""
    listed = cases.tailtrace("history", "--json=lines", f"--thread={thread}", folder, "all")
    items = [json.loads(line) for line in listed.stdout.splitlines()]
    assert not any("gap" in item for item in items)
    return [(int(item["address"], 16), item["bytes"], step(item.get("function", "")))
            for item in items if "text" in item]


def executed_by_perf(path):
    """The same as perf has them, by thread."""
    outcome = subprocess.run([PERF, "script", "-i", path, "--itrace=i1ie", "-F",
                              "tid,ip,sym,insn"],
                             capture_output=True, text=True, timeout=cases.HANG_S, check=True)
    threads = {}
    for tid, address, name, code in re.findall(
            r"(?m)^\s*(\d+)\s+([0-9a-f]+) (.*?)\s+insn: (.*)$", outcome.stdout):
        threads.setdefault(int(tid), []).append((int(address, 16), code.replace(" ", ""),
                                                 step(name)))
    return threads, outcome.stderr


class Written(cases.CommandCase):
    """Cases about the file that is made of a recording of PROGRAM."""

    PROGRAM = None
    OPTIONS, ARGUMENTS = (), ()
    THREADS = 0

    @classmethod
    def setUpClass(cls):
        cases.needs_engine(cls("test_is_read_again"), "qemu")
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.session = os.path.join(folder, "session")
        cls.path = os.path.join(folder, "perf.data")
        for arguments in (("run", "--no-debugger", "--engine=qemu", "--keep=" + cls.session,
                           *cls.OPTIONS, "--", os.path.join(PROGRAMS, cls.PROGRAM), *cls.ARGUMENTS),
                          ("export", "--format=perf-data", "-o", cls.path, cls.session)):
            outcome = cases.tailtrace(*arguments)
            assert outcome.returncode == 0, outcome.stderr
        info = json.loads(cases.tailtrace("info", "--json", cls.session).stdout)
        cls.threads = {thread["tid"]: executed(cls.session, thread["tid"])
                       for thread in info["threads"]}
        assert len(cls.threads) == cls.THREADS and all(cls.threads.values())

    @unittest.skipUnless(PERF, "no perf (Debian: linux-perf)")
    def test_perf_decodes_every_instruction_of_every_thread(self):
        threads, errors = executed_by_perf(self.path)
        self.assertEqual(threads.keys(), self.threads.keys())
        for thread, instructions in self.threads.items():
            self.assertTrue(threads[thread] == instructions, thread)
        self.assertNotIn("error", errors)

    def test_is_read_again(self):
        for thread, instructions in self.threads.items():
            self.assertTrue(executed(self.path, thread) == instructions, thread)


class LibraryOfOneThread(Written):
    PROGRAM = "loads_in_thread"
    THREADS = 2


class LibrariesInOnePlace(Written):
    """One after the other, and both threads go through all of them."""

    PROGRAM = "replaces_for_thread"
    OPTIONS = ["--ring=8192"]  # the thread's whole history, and some of the first one's
    ARGUMENTS = [os.path.join(PROGRAMS, f"{name}_same.so")
                 for name in ("first", "second", "first", "first")]
    THREADS = 2


class ThreeWorkers(Written):
    PROGRAM = "three_workers"
    THREADS = 3

    def test_opens_where_a_recording_does(self):
        opened = cases.tailtrace("open", "--json", self.path)
        self.assertEqual(opened.returncode, 0, opened.stderr)
        self.assertEqual([thread["tid"] for thread in json.loads(opened.stdout)["threads"]],
                         list(self.threads))
        self.assertEqual(cases.tailtrace("hits", self.path, "collatz").returncode, 0)

    def test_only_what_ends_with_the_newest_can_be_written(self):
        outcome = cases.tailtrace("export", "--format=perf-data", "--range=1,10", self.session)
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("ends with the newest", outcome.stderr)


del Written  # it has no program


class ProgramsOfOneProcess(cases.CommandCase):
    """One after the other, each with its own code at the same places."""

    @unittest.skipUnless(PERF, "no perf (Debian: linux-perf)")
    def test_perf_decodes_both(self):
        cases.needs_engine(self, "qemu")
        with tempfile.TemporaryDirectory() as folder:
            session, path = os.path.join(folder, "session"), os.path.join(folder, "perf.data")
            program = os.path.join(PROGRAMS, "rounds")
            for arguments in (("run", "--no-debugger", "--engine=qemu", "--keep=" + session,
                               "--ring=1024", "--", "/bin/sh", "-c", f"exec {program} 3"),
                              ("export", "--format=perf-data", "-o", path, session)):
                outcome = cases.tailtrace(*arguments)
                self.assertEqual(outcome.returncode, 0, outcome.stderr)
            info = json.loads(cases.tailtrace("info", "--json", session).stdout)
            tid, = {thread["tid"] for thread in info["threads"]}
            instructions = executed(session, f"{tid}#1") + executed(session, f"{tid}#2")
            threads, errors = executed_by_perf(path)
        self.assertEqual(list(threads), [tid])
        self.assertTrue(threads[tid] == instructions)
        self.assertNotIn("error", errors)


class Version(cases.CommandCase):
    def test_is_that_of_the_option(self):
        self.assertEqual(cases.tailtrace("version").stdout, cases.tailtrace("--version").stdout)
        document = json.loads(cases.tailtrace("version", "--json").stdout)
        self.assertEqual(document["schema"], "tailtrace.version/1")
        self.assertEqual("tailtrace " + document["version"] + "\n",
                         cases.tailtrace("version").stdout)


if __name__ == "__main__":
    cases.main()
