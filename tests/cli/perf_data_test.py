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


def executed(folder, thread):
    """The addresses of all instructions of a thread, as `tailtrace history` has them."""
    listed = cases.tailtrace("history", "--json=lines", f"--thread={thread}", folder, "all")
    items = [json.loads(line) for line in listed.stdout.splitlines()]
    return [int(item["address"], 16) for item in items if "text" in item]


def executed_by_perf(path, *options):
    """The same as perf has them, by thread."""
    outcome = subprocess.run([PERF, "script", "-i", path, "--itrace=i1i", "-F", "tid,ip"],
                             capture_output=True, text=True, timeout=cases.HANG_S, check=True)
    threads = {}
    for tid, address in re.findall(r"(?m)^\s*(\d+)\s+([0-9a-f]+)$", outcome.stdout):
        threads.setdefault(int(tid), []).append(int(address, 16))
    return threads, outcome.stderr


class Written(cases.CommandCase):
    """Cases about the file that is made of a recording of PROGRAM."""

    PROGRAM = None
    THREADS = 0

    @classmethod
    def setUpClass(cls):
        cases.needs_engine(cls("test_is_read_again"), "qemu")
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.session = os.path.join(folder, "session")
        cls.path = os.path.join(folder, "perf.data")
        for arguments in (("run", "--no-debugger", "--engine=qemu", "--keep=" + cls.session, "--",
                           os.path.join(PROGRAMS, cls.PROGRAM)),
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
        for thread, addresses in self.threads.items():
            self.assertTrue(threads[thread] == addresses, thread)
        self.assertNotIn("error", errors)

    def test_is_read_again(self):
        for thread, addresses in self.threads.items():
            self.assertTrue(executed(self.path, thread) == addresses, thread)


class LibraryOfOneThread(Written):
    PROGRAM = "loads_in_thread"
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


class Version(cases.CommandCase):
    def test_is_that_of_the_option(self):
        self.assertEqual(cases.tailtrace("version").stdout, cases.tailtrace("--version").stdout)
        document = json.loads(cases.tailtrace("version", "--json").stdout)
        self.assertEqual(document["schema"], "tailtrace.version/1")
        self.assertEqual("tailtrace " + document["version"] + "\n",
                         cases.tailtrace("version").stdout)


if __name__ == "__main__":
    cases.main()
