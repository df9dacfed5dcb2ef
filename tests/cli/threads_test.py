"""Recordings of several threads: each question is answered for every thread as for that one alone,
and all of them together are what the program did."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests/programs/three_workers")
QUESTIONS = {
    "last": ["work_begin"],
    "hits": ["collatz"],
    "find": ["--kind=call"],
    "stats": [],
}


class Threads(cases.CommandCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.session = os.path.join(cls.folder, "session")
        if cases.doctor():
            cls.outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + cls.session,
                                          "--ring=1048576", "--", PROGRAM, "200")

    def setUp(self):
        cases.needs_engine(self, "qemu")
        self.assertEqual(self.outcome.returncode, 0, self.outcome.stderr)
        info = json.loads(cases.tailtrace("info", "--json", self.session).stdout)
        self.tids = [thread["tid"] for thread in info["threads"]]

    def ask(self, verb, *words):
        outcome = cases.tailtrace(verb, "--json", self.session, *words)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return json.loads(outcome.stdout)

    def test_there_are_three(self):
        self.assertEqual(len(set(self.tids)), 3)

    def test_questions_to_all_are_questions_to_each(self):
        for verb, words in QUESTIONS.items():
            with self.subTest(verb):
                together = self.ask(verb, *words)["threads"]
                self.assertEqual([thread["tid"] for thread in together], self.tids)
                for thread in together:
                    alone = self.ask(verb, f"--thread={thread['tid']}", *words)["threads"]
                    self.assertEqual(alone, [thread])

    def test_each_thread_worked_once(self):
        """200 numbers each, by the source."""
        for thread in self.ask("hits", "work_begin")["threads"]:
            self.assertEqual(thread["count"], 1)
        self.assertEqual([thread["count"] for thread in self.ask("hits", "collatz")["threads"]],
                         [200] * 3)

    def test_one_thread_at_a_time_is_listed(self):
        for verb in ("history", "calls"):
            for tid in self.tids:
                document = self.ask(verb, f"--thread={tid}")
                self.assertEqual(document["tid"], tid)
                self.assertGreater(document["size"], 1000)
        said = cases.tailtrace("history", self.session).stderr
        self.assertIn(f"thread {self.tids[0]}.{self.tids[0]} of 3", said)

    def test_what_decided_is_of_the_thread_that_was_there_last(self):
        """The main thread ends the process when the others have ended."""
        times = {}
        for tid in self.tids:
            hits = self.ask("last", f"--thread={tid}", "collatz")["threads"][0]["hits"]
            times[tid] = hits[0]["time"]
        last = max(self.tids, key=times.get)
        self.assertEqual(self.ask("why", "collatz")["tid"], last)
        self.assertEqual(self.ask("why", "main")["tid"], self.tids[0])
        for tid in self.tids:
            self.assertEqual(self.ask("why", f"--thread={tid}", "collatz")["tid"], tid)
        first = cases.tailtrace("why", "--json", "--at=-5", self.session)
        self.assertEqual(json.loads(first.stdout)["tid"], self.tids[0])
        outcome = cases.tailtrace("why", self.session, "abort")
        self.assert_error(outcome, 1, "abort was not reached", why="of 3 threads")

    def test_what_decided_a_crash_is_of_the_thread_that_crashed(self):
        crashed = os.path.join(self.folder, "crashed")
        program = os.path.join(cases.BINARY_DIR, "tests", "programs", "crashes_in_thread")
        cases.tailtrace("run", "--no-debugger", "--keep=" + crashed, "--", program)
        outcome = cases.tailtrace("why", crashed)
        self.assertRegex(outcome.stderr, r"thread \S+ of 4 is that of SIGSEGV; --thread=TID picks")
        newest = outcome.stdout.splitlines()[:2]
        self.assertRegex(newest[0], r"next  crashes_in_thread\.c:\d+  store$")
        self.assertIn("not taken", newest[1])

    def test_merged_they_are_each_threads_items_in_the_order_of_time(self):
        document = self.ask("history", "--merged", "-2000,-1")
        self.assertEqual(document["schema"], "tailtrace.merged/1")
        stretches = document["stretches"]
        self.assertEqual(sum(len(stretch["items"]) for stretch in stretches), 2000)
        begins = [stretch.get("begin", 0) for stretch in stretches]
        self.assertEqual(begins, sorted(begins))
        self.assertGreater(begins[-1], 0)
        for tid in self.tids:
            mine = [item for stretch in stretches if stretch["tid"] == tid
                    for item in stretch["items"]]
            alone = self.ask("history", f"--thread={tid}", f"-{len(mine)},-1") if mine else None
            self.assertEqual([item.get("address") for item in mine],
                             [item.get("address") for item in alone["items"]] if mine else [])

    def test_what_a_thread_does_comes_behind_what_made_it(self):
        session = os.path.join(self.folder, "hand_over")
        program = os.path.join(cases.BINARY_DIR, "tests/programs/hand_over")
        outcome = cases.tailtrace("run", "--no-debugger", "--keep=" + session, "--ring=1048576",
                                  "--", program)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        said = cases.tailtrace("history", "--merged", "--json", session, "-100000,-1")
        self.assertEqual(said.returncode, 0, said.stderr)
        stretches = json.loads(said.stdout)["stretches"]

        def first(name):
            return next(number for number, stretch in enumerate(stretches)
                        if any(item.get("function") == name for item in stretch["items"]))

        self.assertLess(first("main"), first("in_worker"))
        self.assertNotEqual(stretches[first("main")]["tid"], stretches[first("in_worker")]["tid"])
        # The same for people.
        said = cases.tailtrace("history", "--merged", session, "all")
        self.assertEqual(said.returncode, 0, said.stderr)
        headers = [line for line in said.stdout.splitlines() if line.startswith("thread ")]
        self.assertEqual(len({line.split()[1] for line in headers}), 2)
        self.assertIn("(may overlap what is above)", said.stdout)

    def test_last_of_none_is_whether_there_is_one(self):
        for place, status in (("work_begin", 0), ("main", 0), ("exit_group", 1)):
            outcome = cases.tailtrace("last", "--limit=0", self.session, place)
            self.assertEqual((outcome.returncode, outcome.stdout), (status, ""), outcome.stderr)
            self.assertEqual(outcome.stderr == "", status == 0, outcome.stderr)
        for kind, status in (("call", 0), ("gap", 1)):
            outcome = cases.tailtrace("find", "--limit=0", f"--kind={kind}", self.session)
            self.assertEqual((outcome.returncode, outcome.stdout), (status, ""), outcome.stderr)
        outcome = cases.tailtrace("last", "--frames=0", self.session, "work_begin")
        self.assert_error(outcome, 2, "arguments of tailtrace last",
                          "--frames: `0` is no number from 1 on")

    def test_merged_has_no_numbers_in_common(self):
        outcome = cases.tailtrace("history", "--merged", self.session, "1,5")
        self.assert_error(outcome, 2, "cannot show the range `1,5` of all threads",
                          "no numbers in common", "-N,-1")

    def test_why_and_export_and_diff(self):
        for tid in self.tids:
            document = self.ask("why", f"--thread={tid}")
            self.assertEqual(document["tid"], tid)
        folded = cases.tailtrace("export", "--format=folded", self.session)
        self.assertEqual(folded.returncode, 0, folded.stderr)
        self.assertIn("work;collatz", folded.stdout)


class Live(cases.CommandCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.session = os.path.join(folder.name, "session")

    def end(self, recorder):
        for pid in cases.children_of(recorder.pid):
            os.kill(pid, signal.SIGKILL)
        recorder.wait(cases.HANG_S)

    def test_what_is_lost_is_told_once_while_it_grows(self):
        program = os.path.join(cases.BINARY_DIR, "tests/programs/comes_and_goes")
        with subprocess.Popen([cases.TAILTRACE, "run", "--no-debugger", "--ring=4096",
                               "--keep=" + self.session, "--", program],
                              stderr=subprocess.DEVNULL) as recorder:
            try:
                said = ""
                while "ended threads" not in said and recorder.poll() is None:
                    said = cases.tailtrace("info", self.session).stderr
                said = cases.tailtrace("info", self.session).stderr
            finally:
                self.end(recorder)
        self.assertEqual(said.count("are missing"), 1, said)


if __name__ == "__main__":
    cases.main()
