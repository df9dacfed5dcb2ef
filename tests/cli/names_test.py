"""Names that would command a terminal or a browser: of a function, a program and its folder.
Whatever is shown of a recording of it, as text, JSON or a page, is free of control characters and
markup of theirs."""

import json
import os
import shutil
import tempfile
import unicodedata

import cases

EVIL = "evil\033[2J"  # tests/programs/hostile_names
FOLDER, PROGRAM = "folder\033[31m<i>&\u009b", "prog\033]0;x"
SHOWN = "evil?[2J"

BUNDLE = "the recording"

# What is asked, and whether the answer names the function.
TEXTS = [
    (("info", BUNDLE), False), (("history", BUNDLE), False),
    (("history", "--merged", BUNDLE), False),
    (("calls", BUNDLE), False), (("stats", BUNDLE), False), (("coverage", BUNDLE), False),
    (("coverage", "--lines", BUNDLE), False), (("coverage", "--lcov", BUNDLE), False),
    (("find", "--kind=call", BUNDLE), False), (("find", "--in=" + EVIL, BUNDLE), True),
    (("hits", BUNDLE, EVIL), True), (("last", BUNDLE, EVIL), True), (("why", BUNDLE, EVIL), True),
    (("calls", BUNDLE, EVIL), True), (("export", "--format=folded", BUNDLE), True),
    (("export", "--format=btrace", BUNDLE), False),
    (("export", "--format=autofdo", BUNDLE), False),
]
# Unescaped, by its definition.
JSON_ALLOWS = "\u009b"
JSONS = ["info", "history", "calls", "stats", "coverage", "find"]
FILES = ["html", "chrome", "perfetto"]


def controls(text):
    return {char for char in text if unicodedata.category(char) == "Cc" and char not in "\n\t"}


class HostileNames(cases.CommandCase):
    def setUp(self):
        works = [one["name"] for one in cases.doctor()["engines"] if one["works"]]
        engine = next((name for name in ("qemu", "step") if name in works), None)
        if engine is None:
            self.skipTest("no engine works here")
        self.place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.place)
        folder = os.path.join(self.place, FOLDER)
        os.mkdir(folder)
        self.program = os.path.join(folder, PROGRAM)
        shutil.copy(os.path.join(cases.BINARY_DIR, "tests", "programs", "hostile_names"),
                    self.program)
        session, self.bundle = self.place + "/session", self.place + "/saved.tt"
        for words in (("run", "--no-debugger", "--engine=" + engine, "--keep=" + session, "--",
                       self.program), ("save", session, self.bundle)):
            self.assertEqual(self.asked(*words).returncode, 0)

    def asked(self, *words, allowed=""):
        """An answer that no terminal would obey."""
        outcome = cases.tailtrace(*words)
        self.assertEqual(controls(outcome.stdout + outcome.stderr) - set(allowed), set(), words)
        return outcome

    def test_are_shown_as_text(self):
        for words, names_it in TEXTS:
            with self.subTest(words):
                outcome = self.asked(*(self.bundle if word == BUNDLE else word for word in words))
                self.assertEqual(outcome.returncode, 0, outcome.stderr)
                if names_it:
                    self.assertTrue(SHOWN in outcome.stdout, outcome.stdout[:1000])

    def test_are_data_in_json(self):
        for verb in JSONS:
            with self.subTest(verb):
                self.assertTrue(json.loads(self.asked(verb, "--json", self.bundle,
                                                      allowed=JSON_ALLOWS).stdout))
        function = json.loads(self.asked("hits", "--json", self.bundle, EVIL,
                                         allowed=JSON_ALLOWS).stdout)
        self.assertEqual(function["threads"][0]["count"], 1)

    def test_are_no_markup_of_a_page_and_no_end_of_a_string(self):
        for form in FILES:
            path = os.path.join(self.place, form)
            outcome = self.asked("export", "--format=" + form, "--output=" + path, self.bundle)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        for form in ("html", "chrome"):
            with open(os.path.join(self.place, form), encoding="utf-8") as file:
                self.assertEqual(controls(file.read()) - set(JSON_ALLOWS), set(), form)
        with open(os.path.join(self.place, "html"), encoding="utf-8") as file:
            self.assertNotIn("<i>", file.read())

    def test_are_told_of_when_the_file_is_gone(self):
        os.remove(self.program)
        outcome = self.asked("history", self.bundle, "all")
        self.assertIn("error: cannot name the functions of ", outcome.stderr)
        self.assertIn("folder?[31m<i>&?/prog?]0;x\n", outcome.stderr)
        for verb in ("last", "hits", "why", "calls"):
            self.assertEqual(self.asked(verb, self.bundle, EVIL).returncode, 1, verb)


if __name__ == "__main__":
    cases.main()
