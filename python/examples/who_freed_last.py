"""Who called a function last (`free`, unless another is named), with the calls that led there:
who_freed_last.py [--function NAME] PROGRAM [ARG...]"""

import argparse

import tailtrace

# The C library's own name for what programs call `free`.
ALIASES = {"free": ["free", "__GI___libc_free", "__libc_free", "cfree"]}


def last_callers(h, function):
    """The newest call of the function: it and its callers, innermost first; or nothing."""
    names = ALIASES.get(function, [function])
    calls = h.calls()
    for call in reversed(calls):
        if call.function in names and not call.earlier:
            return calls.stack(call.first)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", default="free")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for h in tailtrace.record(options.program).threads:
        callers = last_callers(h, options.function)
        print(f"thread {h.tid}:" + ("" if callers else f" {options.function} was not called"))
        for call in callers:
            insn = h.at(call.last)
            where = f" at {insn.file}:{insn.line}" if insn.line else ""
            print(f"  {call.function or '(no symbol)'}{where}")


if __name__ == "__main__":
    main()
