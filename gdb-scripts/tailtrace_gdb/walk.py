"""Going to places of the past."""

import gdb

from . import frames, place, source
from .errors import user_error
from .prefix import Command
from .ranges import number_of
from .words import source_line


def go_to(history, number):
    place.check(history, number)
    shown = place.move(history, number)
    frames.show(history, number, shown)


class Goto(Command):
    """Show the program as it was when it was about to execute an instruction.

Usage: tailtrace goto N | begin | end

N counts from 1, or back from -1; `end` is the present. Shown are the source line and the call
stack of that moment, as many frames as `set tailtrace frames` says."""

    name = "goto"

    def run(self, argument):
        word = argument.strip()
        history = source.current()
        size = history.size
        if word in ("begin", "start"):
            go_to(history, self.first(history))
        elif word == "end":
            go_to(history, size + 1)
        elif not word:
            raise user_error("cannot go anywhere", "no number was given",
                             "see `help tailtrace goto`")
        else:
            number = number_of(word)
            go_to(history, number + (size + 1 if number < 0 else 0))

    @staticmethod
    def first(history):
        """Of what GDB has, if it has any."""
        record = place.recording(history)
        return 1 if record is None else max(1, 1 + place.offset_to_gdb(record, history.size))

    def complete(self, text, word):
        return [choice for choice in ("begin", "end", "-1") if choice.startswith(text)]


class Back(Command):
    """Go back by one instruction, or by so many.

Usage: tailtrace back [COUNT]"""

    name = "back"
    completion = gdb.COMPLETE_NONE
    direction = -1

    def run(self, argument):
        count = number_of(argument) if argument.strip() else 1
        history = source.current()
        go_to(history, place.standing(history) + self.direction * count)


class Forward(Back):
    """Go forward by one recorded instruction, or by so many.

Usage: tailtrace forward [COUNT]"""

    name = "forward"
    direction = 1


class Frame:
    """Walks back through the instructions of one call and then of its caller, leaving out what was
    called and has returned."""

    def __init__(self, history, number):
        self.history = history
        self.call = history.call_holding(min(number, history.size))
        self.number = number
        self.caller = None  # set when the walk has left the call for its caller

    def back(self):
        """The number of the instruction before in this call, or of the one that called it."""
        if self.call is None:
            return None
        if self.number > self.call["first"]:
            return self.number - 1
        before = self.call.get("earlier") or self.call.get("caller")
        if not before:
            return None
        return self.history.call(before)["last"]

    def step(self):
        before = self.back()
        if before is None:
            return False
        if before < self.call["first"]:
            self.call = self.history.call_holding(before)
        self.number = before
        return True


def line_at(history, number):
    """(file, line) of an item; None for gaps and where there is none."""
    item = history.item(number) if number <= history.size else {}
    text = item.get("address") if "gap" not in item else None
    if number > history.size:
        text = history.facts().get("stop")
    found = source_line(int(text, 16)) if text else None
    return None if found is None else (found[0].fullname(), found[1])


def start_of_line_before(history, number):
    """Where the line that `number` is in begins, or if it stands there, the one before."""
    frame = Frame(history, number)
    line = line_at(history, number)
    start = number
    if number > history.size:
        start = number = frame.number = history.size + 1
    while frame.step():
        here = line_at(history, frame.number)
        if here != line:
            if start != number:
                return start
            line, number = here, 0
        start = frame.number
    return start


class NextBack(Command):
    """Go back to the beginning of a source line, over the calls made there.

Usage: tailtrace next-back [COUNT]

In the middle of a line it goes to its beginning, else to the beginning of the line executed before
it in this function, or to the line that called it."""

    name = "next-back"
    completion = gdb.COMPLETE_NONE

    def run(self, argument):
        count = number_of(argument) if argument.strip() else 1
        history = source.current()
        number = place.standing(history)
        for _ in range(count):
            before = start_of_line_before(history, number)
            if before == number:
                raise user_error("cannot go back by a line", "nothing before it was recorded")
            number = before
        go_to(history, number)


class FinishBack(Command):
    """Go back to where the function that is shown was called.

Usage: tailtrace finish-back"""

    name = "finish-back"
    completion = gdb.COMPLETE_NONE

    def run(self, argument):
        history = source.current()
        number = place.standing(history)
        call = history.call_holding(min(number, history.size))
        if call is None or not call.get("caller"):
            raise user_error("cannot go back to the call", "it was not recorded")
        go_to(history, history.call(call["caller"])["last"])


class Where(Command):
    """Show where in the history the program stands, and the call stack of that moment.

Usage: tailtrace where"""

    name = "where"
    completion = gdb.COMPLETE_NONE

    def run(self, argument):
        history = source.current()
        number = place.standing(history)
        if number > history.size:
            gdb.write(f"At the present, behind instruction {history.size}.\n")
        else:
            gdb.write(f"At instruction {number} of {history.size}.\n")
        frames.show(history, number, False)


COMMANDS = [Goto, Back, Forward, NextBack, FinishBack, Where]
