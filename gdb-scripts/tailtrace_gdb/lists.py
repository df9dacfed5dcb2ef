"""Histories as lists: instructions, functions."""

import gdb

from . import source
from .prefix import Command
from .ranges import Pager, split_modifiers
from .words import Words, inlined_text, source_text


class InstructionHistory(Command):
    """Show the instructions that the selected thread executed, newest last.

Usage: tailtrace instruction-history [/srbf] [N | N,M | N,+K | N,-K | -]

Without a range it shows the newest ones, and when repeated those that follow; `-` shows those
before. Modifiers: /s source lines and inlined functions, /r or /b bytes, /f no function names."""

    name = "instruction-history"
    pager = Pager()

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "msrbfp")
        history = source.current()
        first, last = self.pager.pick(text, history.thread, history.size,
                                      gdb.parameter("tailtrace history-size"))
        words = Words()
        shown = None
        for item in history.fetch("items", first, last):
            if "gap" in item:
                gdb.write(f"{item['number']}\t   [{item['gap']}: {item['text']}]\n")
                shown = None
                continue
            if modifiers & {"s", "m"}:
                shown = show_source(int(item["address"], 16), shown)
            gdb.write(words.line(item, modifiers))


def show_source(address, shown):
    """Writes the source line of an address if it is another than `shown`; returns what it wrote."""
    text = source_text(address)
    if text is not None and text != shown:
        gdb.write(text + inlined_text(address))
    return text


class FunctionCallHistory(Command):
    """Show the functions that the selected thread was in, newest last.

Usage: tailtrace function-call-history [/ilc] [N | N,M | N,+K | N,-K | -]

Modifiers: /i numbers of instructions, /l source lines, /c indented by call depth."""

    name = "function-call-history"
    pager = Pager()

    def run(self, argument):
        modifiers, text = split_modifiers(argument, "ilc")
        history = source.current()
        first, last = self.pager.pick(text, history.thread, history.number_of_calls(),
                                      gdb.parameter("tailtrace history-size"))
        for call in history.fetch("calls", first, last):
            gdb.write(call_line(call, modifiers))


def call_line(call, modifiers):
    indent = "  " * call.get("level", 0) if "c" in modifiers else ""
    if "gap" in call:
        return f"{call['number']}\t{indent}[{call['gap']}: {call['text']}]\n"
    text = f"{call['number']}\t{indent}{call.get('function', '??')}"
    if "i" in modifiers:
        text += f"\tinst {call['first']},{call['last']}"
    if "l" in modifiers and "file" in call:
        lines = f"{call['first_line']}"
        if call["last_line"] != call["first_line"]:
            lines += f",{call['last_line']}"
        text += f"\tat {call['file']}:{lines}"
    return text + "\n"


COMMANDS = [InstructionHistory, FunctionCallHistory]
