"""Histories as lists: instructions, functions."""

import gdb

from . import source
from .errors import user_error
from .folding import FoldedPages, folded, gap_line, loop_line
from .prefix import MORE, Command, completed
from .ranges import Lines, Pager, Things, split_modifiers
from .search import refuse_unknown
from .styles import styled
from .words import Words, inlined_text, listed, source_text


class InstructionHistory(Command):
    """Show the instructions that the selected thread executed, newest last.

Usage: tailtrace instruction-history [/srbfa] [N | N,M | N,+K | N,-K | -]

Without a range it shows the newest ones, and when repeated those that follow; `-` shows those
before. A loop that went round three times or more is one line, followed by its last round.
Modifiers: /s source lines and inlined functions, /r or /b bytes, /f no function names, /a all
rounds of loops.

A long history (of more than a million branches) has numbers back from -1, the newest, so that its
newest part is there at once."""

    name = "instruction-history"
    elsewhere = ("instructions", "history")
    pager = Pager()

    def complete(self, text, word):
        return completed(text, word, listed)

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "msrbfpa")
        fold = gdb.parameter("tailtrace fold-loops") and "a" not in modifiers
        history = source.current()
        pages = FoldedPages(history) if fold else Lines
        first, last = self.pager.pick(text, Things(history, "items"),
                                      gdb.parameter("tailtrace history-size"), pages)
        words = Words(history)
        shown = None
        for item in folded(history, first, last, fold):
            if "gap" in item:
                gdb.write(gap_line(history, item))
                shown = None
            elif "rounds" in item:
                gdb.write(loop_line(history, item))
                shown = None
            else:
                if modifiers & {"s", "m"}:
                    shown = show_source(item, shown)
                gdb.write(words.line(item, modifiers))


def show_source(item, shown):
    """Writes the source line of an item if it is another than `shown`; returns what it wrote."""
    text = source_text(item)
    if text is not None and text != shown:
        gdb.write(text + inlined_text(int(item["address"], 16)))
    return text


class FunctionCallHistory(Command):
    """Show the functions that the selected thread was in, newest last.

Usage: tailtrace function-call-history [/ilc] [N | N,M | N,+K | N,-K | -]

Modifiers: /i numbers of instructions, /l source lines, /c indented by call depth."""

    name = "function-call-history"
    elsewhere = ("functions",)
    pager = Pager()

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "ilc")
        history = source.current()
        first, last = self.pager.pick(text, Things(history, "calls"),
                                      gdb.parameter("tailtrace history-size"))
        for call in history.fetch("calls", first, last):
            gdb.write(call_line(history, call, modifiers))


def call_line(history, call, modifiers):
    number = history.call_number(call["position"])
    indent = "  " * call.get("level", 0) if "c" in modifiers else ""
    if "gap" in call:
        return f"{number}\t{indent}[{call['gap']}: {call['text']}]\n"
    text = f"{number}\t{indent}{styled('function', call.get('function', '??'))}"
    if "i" in modifiers:
        text += f"\tinst {history.number(call['first'])},{history.number(call['last'])}"
    if "l" in modifiers and "file" in call:
        lines = f"{call['first_line']}"
        if call["last_line"] != call["first_line"]:
            lines += f",{call['last_line']}"
        text += f"\tat {styled('filename', call['file'])}:{lines}"
    return text + "\n"


# Of calls, to find those that `tailtrace calls` shows: a loop may have called the same a million
# times.
MOST_PARTS = 100000
# More than any history has.
ALL = 1 << 62
# Calls of a function that are asked for at once.
MOST_WHOLE = 10000


class Calls(Command):
    """Show the calls of the selected thread as a tree, each once, newest last.

Usage: tailtrace calls [FUNCTION]

With a function, its calls alone and where each came from. The numbers are those of the first and
last instruction, with all that was called in between; `before` stands where a call began before the
first. Equal calls in a row are one line. Without a function, only the newest 100000 parts of calls
of a long history are looked at, or some more, unless `tailtrace history-size` is unlimited."""

    name = "calls"
    completion = gdb.COMPLETE_SYMBOL

    def run(self, argument):
        history = source.current()
        limit = gdb.parameter("tailtrace history-size")
        function = argument.strip()
        lines = calls_of(history, function, limit) if function else call_tree_of(history, limit)
        for line in lines:
            gdb.write(line)


def whole_call(history, call, indent=""):
    """A call as a whole, from its first part on."""
    number = history.call_number(call["position"])
    first, last = history.number(call["first"]), history.number(call["last"])
    before = "before " if call.get("begun_before") else ""
    text = f"{number}\t{indent}{styled('function', call.get('function', '??'))}"
    text += f"\tinst {before}{first},{last}"
    if call.get("times", 1) > 1:
        text += f"\t{call['times']} times"
    return text


def whole_call_with_caller(history, call):
    text = whole_call(history, call)
    caller = call.get("caller")
    if caller is not None:
        text += f"\tfrom {styled('function', caller.get('function', '??'))}"
        if "line" in caller:
            text += f" at {styled('filename', caller['file'])}:{caller['line']}"
    return text + "\n"


def calls_of(history, function, limit):
    found, count = history.whole_calls(limit or MOST_WHOLE, function)
    if not found:
        refuse_unknown(function)
        raise user_error(f"{function} was not called in what is recorded")
    if sum(call.get("times", 1) for call in found) < count:
        yield MORE
    for call in reversed(found):
        yield whole_call_with_caller(history, call)


def call_tree_of(history, limit):
    found, looked_at = history.call_tree(limit or ALL, MOST_PARTS if limit else ALL)
    if not found:
        raise user_error("nothing was called in what is recorded")
    if looked_at is not None:
        yield (f"calls before {history.call_number(-looked_at)} were not looked at: "
               "see `help tailtrace calls`\n")
    outermost = min(call.get("level", 0) for call in found)
    for call in found:
        yield whole_call(history, call, "  " * (call.get("level", 0) - outermost)) + "\n"


COMMANDS = [InstructionHistory, FunctionCallHistory, Calls]
