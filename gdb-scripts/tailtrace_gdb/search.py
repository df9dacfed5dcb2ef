"""Asking for places: when they were reached, and how."""

import re

import gdb

from . import frames, place, source
from .errors import user_error
from .history import PIECE
from .prefix import MORE, Command
from .walk import go_to
from .styles import styled, styled_instruction, styled_place
from .words import Words, recorded_line, source_line


def find(history, limit, argument):
    """The newest arrivals at a location, newest first: where a breakpoint of the same words stops,
    by the rules of `tailtrace hits` on the command line."""
    location = argument.strip()
    if not location:
        raise user_error("cannot search for nothing", "", "give a location: FUNCTION or FILE:LINE")
    if location.startswith("*"):  # GDB's own expressions, as `*$pc`
        try:
            location = f"*{int(gdb.parse_and_eval(location[1:])) & (1 << 64) - 1:#x}"
        except (gdb.error, TypeError, ValueError) as error:
            raise user_error(f"cannot search for {location}", str(error)) from None
    found = history.hits(limit, location)
    if not found:
        refuse_unknown(location)
    return found


# MODULE+OFFSET and MODULE`FUNCTION, which GDB does not know.
OF_MODULE = re.compile(r".*\+(0x[0-9a-fA-F]+|[0-9]+)|[^`]+`.*")


def refuse_unknown(location):
    """What was not arrived at may also not be there at all, as far as GDB has anything to know."""
    if OF_MODULE.fullmatch(location) or not gdb.objfiles():
        return
    try:
        gdb.decode_line(location)
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None


def newest_arrival(history, location):
    """Its position."""
    found = find(history, 1, location)
    if not found:
        raise user_error(f"{location.strip()} was not arrived at in what is recorded")
    return found[0]["position"]


class Hits(Command):
    """Show when a location was arrived at, newest last: where a breakpoint would have stopped.

Usage: tailtrace hits LOCATION"""

    name = "hits"
    elsewhere = ("breakpoints",)
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        limit = gdb.parameter("tailtrace history-size") or PIECE
        history = source.current()
        found = find(history, limit + 1, argument)
        if not found:
            gdb.write("It was not arrived at in what is recorded.\n")
        if len(found) > limit:
            gdb.write(MORE)
        words = Words(history)
        for item in reversed(found[:limit]):
            gdb.write(words.line(item, set()))


class Last(Command):
    """Go to the newest arrival at a location.

Usage: tailtrace last LOCATION"""

    name = "last"
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        history = source.current()
        go_to(history, newest_arrival(history, argument))


class WhyHere(Command):
    """Show how the program came to a location the last time: its calls, and what decided it.

Usage: tailtrace why-here [LOCATION]

Without a location, how it came to where it stands. Listed are, newest first, the branches and calls
without which it would not have come there: each decided about the one above it, and what made no
difference is left out. Those made again and again, as by a loop, are one, with their number."""

    name = "why-here"
    completion = gdb.COMPLETE_LOCATION

    def run(self, argument):
        history = source.current()
        if argument.strip():
            position = newest_arrival(history, argument)
        else:
            position = place.standing(history)
        frames.show(history, position, False)
        limit = gdb.parameter("tailtrace history-size") or PIECE
        groups, end = history.reasons(position, limit)
        gdb.write("What decided it, newest first:\n" if groups else
                  "No branch that was recorded decided it.\n")
        words = Words(history)
        for times, decisions in groups:
            if len(decisions) > 1:
                gdb.write(f"{times} times these {len(decisions)}:\n")
            for one in decisions:
                gdb.write(decision_line(words, one, times if len(decisions) == 1 else 1))
        if end == "limit":
            gdb.write(MORE)
        if end == "gap":
            gdb.write("(Before that is a gap...)\n")


def decision_line(words, item, times):
    number = words.history.number(item["position"])
    if "gap" in item:
        return f"{number}\t   [{item['gap']}: {item['text']}]\n"
    address = int(item.get("at", item["address"]), 16)
    did = outcome(words, item)
    what = styled_instruction(words.instruction(item))
    if "event" in item:
        what = f"{item['event']} {item['code']}" if "code" in item else item["event"]
    often = f"\t{times} times" if times > 1 else ""
    found = source_line(address) or (recorded_line(item) if "at" not in item else None)
    where = f"\t{styled('filename', found[0].filename)}:{found[1]}" if found else ""
    in_function = words.place_of(item) if "at" not in item else words.place(address)
    name = f" {styled_place(in_function)}" if in_function else ""
    return (f"{number}\t   {styled('address', f'{address:#018x}')}{name}:\t"
            f"{what}\t{did}{often}{where}\n")


def outcome(words, item):
    if "taken" in item and "event" not in item:
        return "taken" if item["taken"] else "not taken"
    if "to" not in item:
        return "left"
    return f"to {styled_place(place_led_to(words, item)) or item['to']}"


def place_led_to(words, item):
    """Beside a saved folder alone the history knows it, as that was executed next."""
    to = int(item["to"], 16)
    behind = item["position"] + 1
    following = words.history.item(behind) if behind < 0 else {}
    is_there = "gap" not in following and int(following.get("address", "0"), 16) == to
    return words.place_of(following) if is_there else words.place(to)


COMMANDS = [Hits, Last, WhyHere]
