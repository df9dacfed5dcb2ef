"""Which functions ran last, newest first, with the instructions spent in each since the oldest one
shown: last_functions.py PROGRAM [ARG...]"""

import sys

import tailtrace

COUNT = 20


def last_functions(h, count):
    """(function, instructions) of the newest calls, newest first, each function once."""
    found = {}
    for call in reversed(h.calls()):
        name = "(gap)" if call.is_gap else call.function or "(no symbol)"
        found[name] = found.get(name, 0) + call.last - call.first + 1
        if len(found) > count:
            del found[name]
            break
    return list(found.items())


def main(program):
    trace = tailtrace.record(program)
    for h in trace.threads:
        print(f"thread {h.tid}:")
        for name, instructions in last_functions(h, COUNT):
            print(f"  {instructions:8}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
