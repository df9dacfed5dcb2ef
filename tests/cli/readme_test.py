"""The transcripts in README.md, done again and compared.

    readme_test.py             compares
    readme_test.py --rebase    writes what happened into README.md instead

A transcript names a source file of tests/programs and holds what is typed, behind `$ ` to a shell
and behind `(gdb) ` to GDB; the rest is what came back. What differs from one machine to the next
is masked on both sides: addresses, process numbers, the numbers and depths of what was executed
before, and which files GDB finds symbols in.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import cases
import terminal

SOURCE_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
README = os.path.join(SOURCE_DIR, "README.md")
BLOCK = re.compile(r"<!-- transcript: (\S+) -->\n```console\n(.*?)```\n<!-- end -->", re.S)
PROMPT = "(gdb) "


def typed_lines(transcript):
    return [line for line in transcript.splitlines() if line.startswith(("$ ", PROMPT))]


def mask(transcript):
    for pattern, replacement in (
            (r"(?m)^Reading symbols from .*\n", ""),
            (r"(?m)^\(No debugging symbols found in .*\n", ""),
            (r"Remote debugging using .*", "Remote debugging using ..."),
            (r"0x[0-9a-f]+", "0x..."),
            (r"(?m)^0x\.\.\. in \S+ \(\) from /lib64/", "0x... from /lib64/"),
            (r"(?m)^\d+\t +(?=\S+\tat )", "N\t"),
            (r"process \d+", "process N")):
        transcript = re.sub(pattern, replacement, transcript)
    return transcript


def run_in_gdb(command, dialogue, folder):
    """The lines of a session in which the dialogue was typed."""
    session = terminal.Terminal(
        "env", "-C", folder, "PATH=" + os.path.dirname(cases.TAILTRACE) + ":" + os.environ["PATH"],
        "sh", "-c", command.replace("tailtrace run", "tailtrace run -nx -iex 'set width 0'"))
    try:
        for line in dialogue:
            session.expect(re.escape(PROMPT) + "$")
            session.type(line.removeprefix(PROMPT) + "\n")
            if line == PROMPT + "kill":
                session.expect(re.escape("(y or n) "))
                session.type("y\n")
        session.exit_status()
    finally:
        session.close()
    return session.text


def replay(source, transcript):
    """The transcript as it happens now."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(SOURCE_DIR, "tests/programs", source), folder)
        result = ""
        lines = typed_lines(transcript)
        while lines:
            line = lines.pop(0)
            result += line + "\n"
            dialogue = []
            while lines and lines[0].startswith(PROMPT):
                dialogue.append(lines.pop(0))
            command = line.removeprefix("$ ")
            if dialogue:
                result += run_in_gdb(command, dialogue, folder)
            else:
                result += subprocess.run(command, shell=True, cwd=folder, capture_output=True,
                                         text=True, check=True).stdout
        return result


class Readme(cases.CommandCase):
    def setUp(self):
        if cases.doctor()["auto"] is None:
            self.skipTest("no engine works here; see tailtrace doctor")

    def test_transcripts_are_what_happens(self):
        with open(README, encoding="utf-8") as file:
            blocks = BLOCK.findall(file.read())
        self.assertTrue(blocks)
        for source, transcript in blocks:
            with self.subTest(source):
                self.assertEqual(mask(replay(source, transcript)), mask(transcript))


def rebase():
    with open(README, encoding="utf-8") as file:
        text = file.read()

    def replaced(match):
        return match[0].replace(match[2], replay(match[1], match[2]))

    with open(README, "w", encoding="utf-8") as file:
        file.write(BLOCK.sub(replaced, text))


if __name__ == "__main__":
    if sys.argv[1:] == ["--rebase"]:
        rebase()
    else:
        cases.main()
