"""Source lines that the last N instructions of a program executed, for `genhtml` and editors:
coverage_lcov.py N PROGRAM [ARG...] > coverage.info"""

import collections
import sys

import tailtrace


def coverage(trace, count):
    """{file: {line: times}}: how often each line was executed by all threads."""
    files = collections.defaultdict(collections.Counter)
    for h in trace.threads:
        for file, lines in h[-count:].coverage().items():
            files[file].update(lines)
    return files


def lcov(files):
    """The text of an lcov tracefile (see geninfo(1))."""
    text = "TN:tailtrace\n"
    for file, lines in sorted(files.items()):
        text += f"SF:{file}\n"
        text += "".join(f"DA:{line},{times}\n" for line, times in sorted(lines.items()))
        executed = sum(times > 0 for times in lines.values())
        text += f"LF:{len(lines)}\nLH:{executed}\nend_of_record\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(lcov(coverage(tailtrace.record(sys.argv[2:]), int(sys.argv[1]))))
