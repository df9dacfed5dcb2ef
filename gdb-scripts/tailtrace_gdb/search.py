"""Asking for places: when they were reached, and how."""

import gdb

from . import frames, source, why
from .errors import user_error
from .history import PIECE
from .prefix import Command
from .walk import go_to
from .words import Words


def addresses_of(location):
    """Where a breakpoint at a location would be."""
    if not location.strip():
        raise user_error("cannot search for nothing", "", "give a location: FUNCTION or FILE:LINE")
    try:
        found = [place.pc for place in gdb.decode_line(location.strip())[1] or ()]
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None
    if not found:
        raise user_error(f"there is no code at {location}")
    return found


def newest_arrival(history, location):
    found = history.find(1, addresses_of(location))
    if not found:
        raise user_error(f"{location.strip()} was not arrived at in what is recorded")
    return found[0]


class Hits(Command):
    """Show when a location was arrived at, newest last: where a breakpoint would have stopped.

Usage: tailtrace hits LOCATION"""

    name = "hits"
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        limit = gdb.parameter("tailtrace history-size") or PIECE
        found = source.current().find(limit, addresses_of(argument))
        if not found:
            gdb.write("It was not arrived at in what is recorded.\n")
        words = Words()
        for item in reversed(found):
            gdb.write(words.line(item, set()))


class Last(Command):
    """Go to the newest arrival at a location.

Usage: tailtrace last LOCATION"""

    name = "last"
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        history = source.current()
        go_to(history, newest_arrival(history, argument)["number"])


class WhyHere(Command):
    """Show how the program came to a location the last time: its calls, and the choices before.

Usage: tailtrace why-here [LOCATION]

Without a location, how it came to where it stands. Listed are conditional branches and jumps and
calls through pointers, newest first, of the functions that were open then, not of those that had
returned; equal ones in a row are one, with their number."""

    name = "why-here"
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        history = source.current()
        number = why.place_of(history, argument, newest_arrival)
        frames.show(history, number, False)
        limit = gdb.parameter("tailtrace history-size") or PIECE
        choices = why.choices_before(history, number, limit)
        gdb.write("The choices before it, newest first:\n" if choices else
                  "No choice before it was recorded.\n")
        words = Words()
        for choice in choices:
            gdb.write(why.choice_line(words, choice))


COMMANDS = [Hits, Last, WhyHere]
