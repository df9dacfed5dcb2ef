"""A turn of the guest's tests in `tests/run`.

    turn.py NAME tests [BOOT-OPTION...] PROGRAM [GTEST-FILTER]
    turn.py NAME sessions [BOOT-OPTION...] BUILD-FOLDER

The first turn of what is built now runs all of them, each later one the next suite, or the next
session, alone.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import turns  # pylint: disable=wrong-import-position


def suites_of(program, words):
    listed = subprocess.run([program, "--gtest_list_tests", *words], capture_output=True,
                            check=True, encoding="utf-8").stdout
    return [line for line in listed.splitlines() if line.endswith(".") and line[0] != " "]


def of_tests(name, words):
    at = next(i for i, word in enumerate(words) if not word.startswith("--"))
    options, program, rest = words[:at], words[at], words[at + 1:]
    leave_out = next((word.removeprefix("--gtest_filter=") for word in rest), "")
    parts = [[f"--gtest_filter={suite}*{leave_out}"] for suite in suites_of(program, rest)]
    return turns.Turns(program, name), [HERE / "run", *options, program], rest, parts


def of_sessions(name, words):
    folder = HERE / "sessions"
    scripts = sorted(path for path in folder.iterdir() if path.is_file() and not path.suffix)
    turn = turns.Turns(f"{words[-1]}/plugin/tailtrace", name, scripts)
    sessions = [[script.name] for script in scripts if script.name != "run"]
    return turn, [folder / "run", *words], [], sessions


def main():
    name, kind, *words = sys.argv[1:]
    of_kind = {"tests": of_tests, "sessions": of_sessions}[kind]
    turn, command, everything, parts = of_kind(name, words)
    part = parts[(turn.had() - 1) % len(parts)] if turn.had() else everything
    if turn.had():
        print(f"{name}: turn {turn.had() + 1} has {' '.join(part)} only")
    sys.stdout.flush()
    status = subprocess.run([*command, *part], check=False).returncode
    if status == 0:
        turn.count()
    sys.exit(status)


if __name__ == "__main__":
    main()
