"""Source lines that the last N instructions of a program executed, for `genhtml` and editors:
coverage_lcov.py N PROGRAM [ARG...] > coverage.info"""

import collections
import sys

import tailtrace


def coverage(trace, count):
    """{file: {line: times}}: how often each line's most executed instruction was executed."""
    files = collections.defaultdict(lambda: collections.defaultdict(int))
    for h in trace.threads:
        view = h[-count:]
        times = collections.Counter(view.columns()["address"].tolist())
        seen = set()
        for insn in view:
            if isinstance(insn, tailtrace.Gap) or insn.address in seen:
                continue
            seen.add(insn.address)
            if insn.line is not None:
                lines = files[insn.file]
                lines[insn.line] = max(lines[insn.line], times[insn.address])
    return files


def lcov(files):
    """The text of an lcov tracefile (see geninfo(1))."""
    text = "TN:tailtrace\n"
    for file, lines in sorted(files.items()):
        text += f"SF:{file}\n"
        text += "".join(f"DA:{line},{times}\n" for line, times in sorted(lines.items()))
        text += f"LF:{len(lines)}\nLH:{len(lines)}\nend_of_record\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(lcov(coverage(tailtrace.record(sys.argv[2:]), int(sys.argv[1]))))
