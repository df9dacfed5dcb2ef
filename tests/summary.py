"""Sums up ctest's JUnit files: why tests were skipped, which failed, and one line at the end."""

import os
import sys
import xml.etree.ElementTree as ElementTree


def reason(case):
    """What a skipped test said: its line "skip: WHY", or the line after GoogleTest's "Skipped"."""
    lines = (case.findtext("system-out") or "").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("skip: "):
            return line.removeprefix("skip: ")
        if line.endswith(": Skipped") and number + 1 < len(lines):
            return lines[number + 1]
    return "no reason given"


def outcome(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main(paths):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for path in paths:
        try:
            cases = ElementTree.parse(path).getroot().findall("testcase")
        except (OSError, ElementTree.ParseError) as error:
            print(f"failed: {path}: {error}")
            count["failed"] += 1
            continue
        if not cases:
            print(f"failed: {path}: no test ran")
            count["failed"] += 1
        for case in cases:
            result = outcome(case)
            name = f"{os.path.basename(path).removesuffix('.xml')}: {case.get('name')}"
            count[result] += 1
            if result == "failed":
                print(f"failed: {name}")
            if result == "passed":
                for line in (case.findtext("system-out") or "").splitlines():
                    if line.startswith("skip: "):
                        print(f"skipped in {name}: {line.removeprefix('skip: ')}")
            if result == "skipped":
                print(f"skipped: {name}: {reason(case)}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
