"""Which functions ran in the last 10 ms, those with the most instructions first:
last_functions.py [--ms N] PROGRAM [ARG...], or --open RECORDING in the place of a program.

A recording from another machine needs --ticks-per-second, the rate of its time-stamp counter.
Where no times were recorded, the functions of the newest calls are shown, which is said.
"""

import argparse
import collections

import tailtrace

CALLS = 1000  # that are looked at without times


def begin_of_last(h, ticks):
    """Position of the oldest item whose time is not longer than that before the newest one's; None
    where no times are known."""
    newest = h.at(-1).time
    if newest is None:
        return None
    return h.find(since=newest - ticks, limit=1)[0].position


def instructions_by_function(calls):
    found = collections.Counter()
    for call in calls:
        name = "(gap)" if call.is_gap else call.function or "(no symbol)"
        found[name] += call.last - call.first + 1
    return found


def show(h, ms, ticks_per_second):
    begin = begin_of_last(h, ms * ticks_per_second // 1000)
    if begin is None:
        print(f"thread {h.tid}: no times are known; in the newest {CALLS} calls:")
        calls = h.calls()[-CALLS:]
    else:
        print(f"thread {h.tid}: in the last {ms} ms:")
        calls = h.calls(begin)
    for name, instructions in instructions_by_function(calls).most_common():
        print(f"  {instructions:8}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=int, default=10)
    parser.add_argument("--ticks-per-second", type=int)
    parser.add_argument("--open", metavar="RECORDING")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    trace = tailtrace.open(given.open) if given.open else tailtrace.record(given.program)
    for h in trace.threads:
        show(h, given.ms, given.ticks_per_second or tailtrace.ticks_per_second())


if __name__ == "__main__":
    main()
