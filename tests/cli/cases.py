"""What the tests of the `tailtrace` command share.

A test file ends with `cases.main()`: it runs the file's unittest cases, and exits with 77, which
ctest counts as skipped, when none of them could run here.
"""

import functools
import json
import os
import re
import select
import subprocess
import sys
import time
import unittest

TAILTRACE = os.environ["TAILTRACE"]
BINARY_DIR = os.environ["TAILTRACE_BINARY_DIR"]

# Long enough for any machine; only a hang takes longer. Under sanitizers tests/run has more.
HANG_S = float(os.environ.get("TAILTRACE_HANG_S", 120))
IS_SANITIZED = bool(os.environ.get("TAILTRACE_TEST_PRELOAD"))


def tailtrace(*arguments, **options):
    """Runs the command to its end; stdout and stderr are text."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TAILTRACE, *arguments], capture_output=True, text=True,
                          timeout=HANG_S, check=False, **options)


class CommandCase(unittest.TestCase):
    def assert_error(self, outcome, status, what, why="", fix=""):
        """The outcome is one error in the agreed shape, with these words in its parts."""
        self.assertEqual(outcome.returncode, status, outcome.stderr)
        self.assertEqual(outcome.stdout, "")
        shape = re.compile(
            r"error: (?P<what>[^\n]+)\n(?:  why:  (?P<why>[^\n]+)\n)?(?:  fix:  (?P<fix>[^\n]+)\n)?"
            r"(?:  now:  (?P<now>[^\n]+)\n)?")
        match = shape.fullmatch(outcome.stderr)
        self.assertIsNotNone(match, "not the shape of an error:\n" + outcome.stderr)
        self.assertIn(what, match["what"])
        self.assertIn(why, match["why"] or "")
        self.assertIn(fix, match["fix"] or "")


@functools.cache
def doctor():
    """What `tailtrace doctor` says of this machine."""
    return json.loads(tailtrace("doctor", "--json").stdout)


def needs_engine(case, name):
    """Skips the case where the engine does not work."""
    verdict = next(one for one in doctor()["engines"] if one["name"] == name)
    if not verdict["works"]:
        case.skipTest(f"engine {name}: {verdict['why']}")


class EngineCase(CommandCase):
    """Cases that for_each_engine() makes a class of for each software engine."""

    engine = ""

    def setUp(self):
        needs_engine(self, self.engine)


def for_each_engine(namespace, *classes, engines=("qemu", "step")):
    """Replaces each class by one for each engine."""
    for case in classes:
        for engine in engines:
            name = case.__name__ + "_" + engine
            namespace[name] = type(name, (case,), {"engine": engine,
                                                   "__module__": case.__module__})
        del namespace[case.__name__]


def tracer_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status_file:
        return int(re.search(r"TracerPid:\s*(\d+)", status_file.read())[1])


def time_taken(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat_file:
        return int(stat_file.read().rsplit(") ")[1].split()[11])


def sleeps_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status_file:
        return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", status_file.read())[1])


def wait_for_sleeps(pid, count):
    """Until it has fallen asleep so often: what asks again and again without a pause never does."""
    begin, end = sleeps_of(pid), time.monotonic() + HANG_S
    while sleeps_of(pid) < begin + count:
        if time.monotonic() > end:
            raise AssertionError(f"process {pid} does not sleep")
        time.sleep(0.01)


def assert_let_go(case, program):
    """A program that computes without end does so, and nobody holds it."""
    end = time.monotonic() + HANG_S
    while tracer_of(program.pid) != 0:
        case.assertIsNone(program.poll())
        case.assertLess(time.monotonic(), end)
    begin = time_taken(program.pid)
    while time_taken(program.pid) < begin + 2:
        case.assertIsNone(program.poll())


def children_of(pid):
    """All processes below a process."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as file:
            for child in file.read().split():
                found += [int(child)] + children_of(child)
    return found


def wait_until_gone(pid):
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(fd):
        ready, _, _ = select.select([fd], [], [], HANG_S)
    if not ready:
        raise AssertionError(f"process {pid} is still there")


def main():
    result = unittest.main(exit=False, verbosity=2).result
    for case, reason in result.skipped:
        print(f"skip: {case.id()}: {reason}")
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
