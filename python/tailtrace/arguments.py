"""What callers give, looked at before it is used."""

import operator
import reprlib
from typing import Any, List, Optional, Tuple

from .errors import UsageError

# The most that the library is asked for; more than there ever is of anything.
MOST = (1 << 64) - 1


def whole_number(given: Any, name: str, least: Optional[int] = None,
                 most: Optional[int] = None) -> int:
    """The number. What is no whole number is a TypeError."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {given!r}") from None
    if least is not None and number < least:
        raise UsageError(f"cannot use {number} for {name}", f"it is at least {least}")
    if most is not None and number > most:
        raise UsageError(f"cannot use {number} for {name}", f"it is at most {most}")
    return number


def parts_of(given: slice) -> Tuple[Optional[int], Optional[int], Optional[int]]:
    """Where a slice starts and stops, and its step. What is no whole number is a TypeError."""
    def part(of: Any) -> Optional[int]:
        return None if of is None else whole_number(of, "a part of a slice")
    return part(given.start), part(given.stop), part(given.step)


def amount(given: Any, name: str) -> int:
    """So much of something at most, in numbers that the library knows."""
    return min(whole_number(given, name, 0), MOST)


def code_pieces(given: Any) -> List[Tuple[int, bytes]]:
    """Addresses and the bytes there. What is none of these is a TypeError."""
    try:
        return [(whole_number(address, "an address of code", 0, MOST), bytes(memoryview(code)))
                for address, code in given]
    except UsageError:
        raise
    except (TypeError, ValueError):
        raise TypeError("code is given as pairs of an address and bytes, as [(0x1000, b'\\x90')], "
                        f"not {reprlib.repr(given)}") from None


def text(given: Any, name: str) -> str:
    """The text. What is none is a TypeError."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is a str, not {given!r}")
    return given
