"""Recordings of several threads: each question is answered for every thread as for that one alone,
and all of them together are what the program did."""

import json
import os
import shutil
import tempfile
import unittest

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

    def test_why_and_export_and_diff(self):
        for tid in self.tids:
            document = self.ask("why", f"--thread={tid}")
            self.assertEqual(document["tid"], tid)
        folded = cases.tailtrace("export", "--format=folded", self.session)
        self.assertEqual(folded.returncode, 0, folded.stderr)
        self.assertIn("work;collatz", folded.stdout)


if __name__ == "__main__":
    cases.main()
