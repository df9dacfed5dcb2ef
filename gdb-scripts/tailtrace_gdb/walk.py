"""Going to places of the past."""

import gdb

from . import frames, place, source
from .errors import user_error
from .prefix import Command, completed
from .ranges import number_of
from .words import line_of, listed


def go_to(history, position):
    shown = place.move(history, position)
    frames.show(history, position, shown)


class Goto(Command):
    """Show the program as it was when it was about to execute an instruction.

Usage: tailtrace goto N | begin | end

N counts from 1, or back from -1; `end` is the present. Shown are the source line and the call
stack of that moment, as many frames as `set tailtrace frames` says."""

    name = "goto"

    def run(self, argument):
        word = argument.strip()
        history = source.current()
        if word in ("begin", "start"):
            # Of what GDB has, if it has any.
            oldest = place.oldest_of_gdb(history)
            go_to(history, history.first_held(-history.size if oldest is None else oldest))
        elif word == "end":
            go_to(history, 0)
        elif not word:
            raise user_error("cannot go anywhere", "no number was given",
                             "see `help tailtrace goto`")
        else:
            number = number_of(word)
            if number == 0:
                raise user_error("there is no instruction 0", f"there are 1 to {history.size}")
            go_to(history, forward_only(history, number))

    def complete(self, text, word):
        return completed(text, word, ["begin", "end", "-1", *listed])


def forward_only(history, number):
    """The position that a number means; what lies behind the present is nowhere."""
    position = history.position(number)
    if position > 0:
        raise history.lacks(position)
    return position


class Back(Command):
    """Go back by one instruction, or by so many.

Usage: tailtrace back [COUNT]"""

    name = "back"
    elsewhere = ("back-inst", "reverse-stepi")
    completion = gdb.COMPLETE_NONE
    direction = -1

    def run(self, argument):
        count = number_of(argument) if argument.strip() else 1
        history = source.current()
        position = place.standing(history) + self.direction * count
        if position > 0:
            forward_only(history, history.size + 1 + position)
        go_to(history, position)


class Forward(Back):
    """Go forward by one recorded instruction, or by so many.

Usage: tailtrace forward [COUNT]"""

    name = "forward"
    direction = 1


class Frame:
    """Walks back through the instructions of one call and then of its caller, leaving out what was
    called and has returned."""

    def __init__(self, history, position):
        self.history = history
        self.call = history.call_holding(min(position, -1))
        self.position = position
        self.out = 0  # to so many callers; what jumped there at its end had the same frame

    def back(self):
        """The instruction before in this call, or the one that called it."""
        if self.call is None:
            return None
        if self.position == 0:
            return calling_newest(self.history) if newest_branch(self.history) == "return" else -1
        if self.position > self.call["first"]:
            return self.position - 1
        before = self.call.get("earlier") or self.call.get("caller")
        if not before:
            return None
        return self.history.call(before)["last"]

    def step(self):
        before = self.back()
        if before is None:
            return False
        if before < self.call["first"]:
            self.out += not (self.call.get("earlier") or self.call.get("tail_called"))
            self.call = self.history.call_holding(before)
        self.position = before
        return True

    def line(self):
        """(file, line), or the function where it has no lines; and to how many callers that is out,
        by which a function is told from itself called by it."""
        call = self.call or {}
        return line_at(self.history, self.position) or call.get("function"), self.out

    def begins_no_statement(self):
        address = self.history.item(self.position).get("address")
        return address is not None and frames.begins_no_statement(int(address, 16))


def newest_branch(history):
    """What led to the present, if it was a branch."""
    return history.item(-1).get("branch")


def calling(history, position):
    """The instruction that called the function which is shown at a position, or None."""
    branch = newest_branch(history) if position == 0 else None
    if branch in frames.CALLS:
        return -1
    if branch == "return":
        position = calling_newest(history)
        if position is None:
            return None
    return led_to(history, history.call_holding(min(position, -1)))


def calling_newest(history):
    """The instruction that called what the newest one returns from, also where that jumped on to
    other functions at its end; or None."""
    call = history.call_holding(-1)
    while call is not None and call.get("tail_called"):
        call = history.call(call["caller"])
    return led_to(history, call)


def led_to(history, call):
    """The instruction that called, or jumped to it at its end, or None."""
    if call is None or not call.get("caller"):
        return None
    return history.call(call["caller"])["last"]


def line_at(history, position):
    """(file, line) of an item; None for gaps and where there is none."""
    if position != 0:
        return line_of(history.item(position))
    stop = history.facts().get("stop")
    return line_of({"address": stop}) if stop else None


def start_of_line_before(history, position):
    """Where the line that `position` is in begins, or if it stands there, the one before."""
    frame = Frame(history, position)
    line = passed = frame.line()
    start = position
    while frame.step():
        here = frame.line()
        # As GDB does: one instruction of another line that is no statement is nothing to stop at.
        is_aside = start == position and here != passed and here[1] == passed[1]
        if is_aside and frame.begins_no_statement():
            passed = here
            continue
        if here != line:
            if start != position:
                return start
            line, position = here, 1  # no position: the line before is being walked
        start = frame.position
    return start


class NextBack(Command):
    """Go back to the beginning of a source line, over the calls made there.

Usage: tailtrace next-back [COUNT]

In the middle of a line it goes to its beginning, else to the beginning of the line executed before
it in this function, or to the line that called it."""

    name = "next-back"
    elsewhere = ("back-over", "reverse-next")
    completion = gdb.COMPLETE_NONE

    def run(self, argument):
        count = number_of(argument) if argument.strip() else 1
        history = source.current()
        position = place.standing(history)
        for _ in range(count):
            before = start_of_line_before(history, position)
            if before == position:
                raise user_error("cannot go back by a line", "nothing before it was recorded")
            position = before
        go_to(history, position)


class FinishBack(Command):
    """Go back to where the function that is shown was called.

Usage: tailtrace finish-back"""

    name = "finish-back"
    elsewhere = ("back-out", "reverse-finish")
    completion = gdb.COMPLETE_NONE
    takes_words = False

    def run(self, argument):
        history = source.current()
        position = calling(history, place.standing(history))
        if position is None:
            raise user_error("cannot go back to the call", "it was not recorded")
        go_to(history, position)


class Where(Command):
    """Show where in the history the program stands, and the call stack of that moment.

Usage: tailtrace where"""

    name = "where"
    elsewhere = ("stack", "backtrace", "bt")
    completion = gdb.COMPLETE_NONE
    takes_words = False

    def run(self, argument):
        history = source.current()
        position = place.standing(history)
        if position == 0:
            newest = "" if history.is_long else f", behind instruction {history.size}"
            gdb.write(f"At the present{newest}.\n")
        else:
            gdb.write(f"At instruction {history.number(position)} of {history.size}.\n")
        frames.show(history, position, False)


COMMANDS = [Goto, Back, Forward, NextBack, FinishBack, Where]
