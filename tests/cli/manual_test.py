"""The man page and the completions, used by the programs they are for."""

import shutil
import subprocess
import unittest

import cases


def complete(*words):
    """What bash offers for the last of the words, split as bash splits a line."""
    line = " ".join(f"'{word}'" for word in ("tailtrace", *words))
    script = cases.tailtrace("help", "--bash").stdout + f"""
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tailtrace
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    outcome = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                             check=True, cwd="/")
    assert outcome.stderr == "", outcome.stderr
    return outcome.stdout.split()


class Bash(cases.CommandCase):
    def test_offers_verbs(self):
        self.assertEqual(complete("doc"), ["doctor"])
        self.assertIn("doctor", complete(""))
        self.assertEqual(complete("help", "doc"), ["doctor"])

    def test_offers_the_verbs_options(self):
        self.assertEqual(complete("doctor", "--j"), ["--json"])
        self.assertEqual(complete("doctor", "--col"), ["--color="])

    def test_offers_the_choices_of_a_value(self):
        self.assertEqual(complete("doctor", "--color", "="), ["auto", "always", "never"])
        self.assertEqual(complete("doctor", "--color", "=", "n"), ["never"])

    def test_offers_files_for_other_words(self):
        self.assertEqual(complete("doctor", "--", "tm"), ["tmp"])
        self.assertEqual(complete("doctor", "tm"), ["tmp"])


class Help(cases.CommandCase):
    def test_of_help_is_the_overview_that_lists_it(self):
        self.assertEqual(cases.tailtrace("help", "help").stdout, cases.tailtrace("help").stdout)


class OtherShells(cases.CommandCase):
    def check_syntax(self, shell, flag):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not here")
        subprocess.run([shell, "-n"], input=cases.tailtrace("help", flag).stdout, text=True,
                       check=True)

    def test_zsh_understands_its_completion(self):
        self.check_syntax("zsh", "--zsh")

    def test_fish_understands_its_completion(self):
        self.check_syntax("fish", "--fish")


class ManPage(cases.CommandCase):
    @unittest.skipUnless(shutil.which("groff"), "groff is not here")
    def test_is_formatted_without_a_warning(self):
        page = cases.tailtrace("help", "--man").stdout
        # -P-cbou: no escapes and no overstriking.
        outcome = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou"], input=page,
                                 capture_output=True, text=True, check=True)
        self.assertEqual(outcome.stderr, "")
        self.assertIn("tailtrace doctor", outcome.stdout)
        self.assertIn("--color", outcome.stdout)


if __name__ == "__main__":
    cases.main()
