#!/usr/bin/env python3
"""`step` and `next` in the past lead where stock LLDB's own lead in the present.

    lldb_steps_test.py --tailtrace PROGRAM --programs FOLDER NAME...

A program runs twice under our debug server: LLDB steps through `main` while nothing is recorded,
and then again through the same in what was recorded. What of it LLDB shows is compared, line by
line.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import lldb_stock

SKIPPED = 77
TIMEOUT_S = float(os.environ.get("TAILTRACE_HANG_S", 120))
FIRST = 22  # that goes back
MOST = 60
WALK = pathlib.Path(__file__).resolve().parent / "lldb_walk.py"


def walks(tailtrace, program, command):
    """The lines where LLDB stops in the present, and in the past."""
    with tempfile.TemporaryDirectory(prefix="tailtrace-steps-") as folder:
        walk = f'script lldb_walk.walk(lldb.debugger, "{command}", {MOST}, "{folder}/%s")'
        before = [f"target create {program}", f"command script import {WALK}",
                  f"plugin load {lldb_stock.plugin(tailtrace)}"]
        commands = ["breakpoint set --skip-prologue false --name main", "run", walk % "present",
                    "process kill", "run", "breakpoint disable 1", "tailtrace start",
                    "thread step-out", "tailtrace goto 1", walk % "past", "process kill"]
        said = subprocess.run(lldb_stock.command(), input=lldb_stock.script(before, commands),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT_S, check=False,
                              env=lldb_stock.debug_server(tailtrace, "qemu")).stdout
        try:
            return [pathlib.Path(folder, name).read_text(encoding="utf-8").splitlines()
                    for name in ("present", "past")]
        except OSError:
            sys.exit(f"LLDB did not come to an end with {program}:\n{said}")


def difference(tailtrace, program, command):
    present, past = walks(tailtrace, program, command)
    print(f"{program}: {command} stops at {len(present)} lines")
    if len(present) < 2:
        return f"{program}: {command} led nowhere"
    for number, (one, other) in enumerate(itertools.zip_longest(present, past), 1):
        if one != other:
            return f"{program}: {command} {number} is at {one} in the present, {other} in the past"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tailtrace", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    why_not = lldb_stock.why_not()
    if why_not or lldb_stock.version() < FIRST or not lldb_stock.plugin(options.tailtrace).exists():
        print(f"skipped: {why_not or 'there is no LLDB 22, or no plugin for it'}")
        return SKIPPED
    wrong = [difference(options.tailtrace, f"{options.programs}/{name}", command)
             for name in options.names for command in ("step", "next")]
    wrong = [one for one in wrong if one]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
