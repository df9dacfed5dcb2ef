"""The loops that went round most often: hottest_loops.py PROGRAM [ARG...]

A loop is a branch taken backwards within one function; its rounds are counted from the records
alone, a whole history at a time.
"""

import sys

import numpy
import tailtrace

JUMPS = [tailtrace.RecordKind.CONDITIONAL, tailtrace.RecordKind.JUMP]


def hottest_loops(h, count):
    """(rounds, first instruction, branch back) of the loops with the most rounds."""
    records = h.records
    back = records[numpy.isin(records["kind"], JUMPS) & (records["to"] <= records["from"])]
    edges, rounds = numpy.unique(back[["to", "from"]], return_counts=True)
    order = numpy.argsort(-rounds.astype(numpy.int64), kind="stable")[:count]
    return [(int(rounds[i]), int(edges[i]["to"]), int(edges[i]["from"])) for i in order]


def place(h, address):
    insn = h[::-1].find(address=address, limit=1)
    if not insn or insn[0].function is None:
        return hex(address)
    return f"{insn[0].function} ({insn[0].file or '?'}:{insn[0].line or '?'})"


def main(program):
    for h in tailtrace.record(program).threads:
        print(f"thread {h.tid}:")
        for rounds, first, last in hottest_loops(h, 10):
            print(f"  {rounds:8} rounds  {last - first:6} bytes  {place(h, first)}")


if __name__ == "__main__":
    main(sys.argv[1:])
