"""The table of limits (decoder/LIMITS.md), and the constants in the sources that it names."""

import re

UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
ROW = re.compile(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \| `(\w+)` ([\w./]+) \|$", re.MULTILINE)


def rows(page):
    """Of each row what it says, the constant, and the file with it."""
    return ROW.findall(page)


def number(said):
    """`4 Mi records` as a number."""
    digits, unit = re.match(r"(\d+)(?: ([KMG]i))?", said).groups()
    return int(digits) * UNITS[unit or ""]


def value_of(constant, source):
    """What a source says that the constant is: shifts and numbers. None if it does not."""
    found = re.search(rf"\b{constant} ?= ?([^;,]+)[;,]", source)
    if not found:
        return None
    plain = re.sub(r"std::size_t\{(\d+)\}", r"\1", found[1]).replace("'", "")
    shifted = re.fullmatch(r"(\d+)u?l*(?: << (\d+))?", plain)
    return int(shifted[1]) << int(shifted[2] or 0) if shifted else None
