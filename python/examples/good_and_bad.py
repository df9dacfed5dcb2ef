"""Where a bad run of a program parted from a good one:
good_and_bad.py [--module FILE] PROGRAM GOOD_ARGUMENT BAD_ARGUMENT"""

import argparse

import tailtrace


def place(h, number):
    """An item in a line."""
    item = h.at(number)
    if isinstance(item, tailtrace.Gap):
        return item.text
    where = f"{item.file}:{item.line}" if item.line else hex(item.address)
    return f"{item.function or '(no symbol)'} at {where}: {item.text}"


def tell(name, h, fork, items):
    if fork is not None:
        print(f"    {name} parted behind  {place(h, fork)}")
    if items is None:
        print(f"    {name} did nothing there")
    else:
        print(f"    {name} went on with   {place(h, items[0])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", default="", help="compare code of this file only")
    parser.add_argument("program")
    parser.add_argument("good")
    parser.add_argument("bad")
    options = parser.parse_args()
    good, bad = (tailtrace.record([options.program, argument]).threads[0]
                 for argument in (options.good, options.bad))
    changes = good.diff(bad, module=options.module)
    print(f"{len(changes)}{' or more' if changes.more else ''} differences")
    for change in changes[:5]:
        print(f"  {change.what} of {change.function}")
        tell("good", good, change.fork_here, change.here)
        tell("bad", bad, change.fork_there, change.there)


if __name__ == "__main__":
    main()
