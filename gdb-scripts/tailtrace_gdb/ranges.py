"""Numbers, ranges and modifiers as the user gives them, in GDB's own words."""

import gdb

from .errors import user_error


def number_of(text):
    try:
        return int(gdb.parse_and_eval(text))
    except (gdb.error, ValueError, TypeError, OverflowError):
        raise user_error(f"cannot use the number `{text}`", "it is not one",
                         "give a number from 1, or back from -1") from None


def split_modifiers(argument, known):
    """"/rs 1,2" to ({"r", "s"}, "1,2")."""
    found = set()
    rest = argument.strip()
    while rest.startswith("/"):
        letters, _, rest = rest[1:].partition(" ")
        rest = rest.strip()
        for letter in letters:
            if letter not in known:
                raise user_error(f"cannot use the modifier `/{letter}`",
                                 "known are " + " ".join(f"/{k}" for k in sorted(known)))
            found.add(letter)
    return found, rest


class Lines:
    """Pages of a list with a line for each thing."""

    @staticmethod
    def back(last, lines):
        """Where a page of so many lines begins that ends with `last`."""
        return last - lines + 1

    @staticmethod
    def forward(first, lines):
        return first + lines - 1


class Pager:
    """Ranges in GDB's words: N, N,M, N,+K, N,-K, -, or nothing for what comes next."""

    def __init__(self):
        self.shown = None  # first and last, of which thread, in a history of which size
        self.pages = Lines

    def pick(self, text, thread, size, page, pages=Lines):
        self.pages = pages
        text = text.strip()
        page = page or size
        if self.shown is not None and self.shown[2:] != (thread, size):
            self.shown = None
        if size == 0:
            raise gdb.GdbError("No instruction was recorded yet.")
        if text == "":
            first, last = self.following(size, page)
        elif text == "-":
            before = self.shown[0] - 1 if self.shown else size
            if before < 1:
                raise gdb.GdbError("At the start of the history.")
            first, last = pages.back(before, page), before
        else:
            first, last = self.given(text, size, page)
        first, last = max(first, 1), min(last, size)
        if first > last:
            raise user_error(f"there is nothing in the range `{text}`", f"there are 1 to {size}")
        self.shown = (first, last, thread, size)
        return first, last

    def following(self, size, page):
        if self.shown is None:
            return self.pages.back(size, page), size
        if self.shown[1] >= size:
            raise gdb.GdbError("At the end of the history.")
        first = self.shown[1] + 1
        return first, self.pages.forward(first, page)

    @staticmethod
    def given(text, size, page):
        begin, comma, end = (part.strip() for part in text.partition(","))
        first = number_of(begin)
        first += size + 1 if first < 0 else 0
        if not comma:
            return first, first + page - 1
        if end.startswith("+"):
            return first, first + number_of(end[1:]) - 1
        if end.startswith("-") and number_of(begin) > 0:
            return first - number_of(end[1:]) + 1, first
        last = number_of(end)
        return first, last + (size + 1 if last < 0 else 0)
