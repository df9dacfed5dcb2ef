"""Numbers, ranges and modifiers as the user gives them, in GDB's own words."""

import gdb

from .errors import user_error


def number_of(text):
    if not text.strip():
        raise user_error("cannot use the range", "a number is missing",
                         "give a number from 1, or back from -1")
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


class Things:
    """What a pager goes through: items or calls of a history."""

    def __init__(self, history, what):
        self.history = history
        self.is_items = what == "items"
        self.what = what

    def first_held(self, position):
        """The position, or that of the oldest, where it is newer."""
        if self.is_items:
            return self.history.first_held(position)
        if position >= 0 or self.history.some(self.what, position, 1):
            return position
        return max(position, -self.size)

    @property
    def size(self):
        return self.history.size if self.is_items else self.history.number_of_calls()

    def position(self, number):
        return number if number < 0 else number - self.size - 1


class Pager:
    """Ranges in GDB's words: N, N,M, N,+K, N,-K, -, or nothing for what comes next; as positions,
    both included."""

    def __init__(self):
        self.shown = None  # first and last, of which history
        self.pages = Lines

    def pick(self, text, things, page, pages=Lines):
        self.pages = pages
        text = text.strip()
        page = page or things.size
        key = things.history.key
        if self.shown is not None and self.shown[2:] != (key,):
            self.shown = None
        if things.first_held(-1) != -1:
            raise gdb.GdbError("No instruction was recorded yet.")
        if text == "":
            first, last = self.following(page)
        elif text == "-":
            before = self.shown[0] - 1 if self.shown else -1
            if things.first_held(before) != before:
                raise gdb.GdbError("At the start of the history.")
            first, last = pages.back(before, page), before
        else:
            first, last = self.given(text, things, page)
        first, last = things.first_held(first), min(last, -1)
        if first > last:
            raise user_error(f"there is nothing in the range `{text}`",
                             f"there are 1 to {things.size}")
        self.shown = (first, last, key)
        return first, last

    def following(self, page):
        if self.shown is None:
            return self.pages.back(-1, page), -1
        if self.shown[1] >= -1:
            raise gdb.GdbError("At the end of the history.")
        first = self.shown[1] + 1
        return first, self.pages.forward(first, page)

    @staticmethod
    def given(text, things, page):
        begin, comma, end = (part.strip() for part in text.partition(","))
        number = number_of(begin)
        first = things.position(number)
        if not comma:
            return first, first + page - 1
        if end.startswith("+"):
            return first, first + number_of(end[1:]) - 1
        if end.startswith("-") and number > 0:
            return first - number_of(end[1:]) + 1, first
        return first, things.position(number_of(end))
