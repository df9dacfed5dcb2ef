"""What was executed, beside GDB's own disassembly (`disassemble`, `x/i`): GDB 13 lets scripts add
to it."""

import contextlib
import importlib

import gdb

from . import source
from .errors import user_error

PIECE = 4096  # bytes of code whose counts are asked for together

_state = {"on": False, "quiet": 0, "key": None, "counts": {}, "known": set()}


@contextlib.contextmanager
def plain():
    """Inside of it nothing is added: for lists that are not of code but of what was executed."""
    _state["quiet"] += 1
    try:
        yield
    finally:
        _state["quiet"] -= 1


def count_of(address):
    """The count of an instruction, or None."""
    with plain():
        history = source.current()
        key = history.key
        if _state["key"] != key:
            _state.update(key=key, counts={}, known=set())
        begin = address - address % PIECE
        if begin not in _state["known"]:
            _state["known"].add(begin)
            for count in history.counts(begin, begin + PIECE):
                _state["counts"][int(count["address"], 16)] = count
    return _state["counts"].get(address)


def note(address):
    """"executed 12 times, taken 3", or nothing where there is no history."""
    try:
        count = count_of(address)
    except (gdb.error, gdb.GdbError):
        return ""
    if count is None:
        return "not executed"
    text = f"executed {count['times']} time{'' if count['times'] == 1 else 's'}"
    if "taken" in count:
        text += f", taken {count['taken']}, not taken {count['times'] - count['taken']}"
    return text


def make(disassembler):
    class Annotator(disassembler.Disassembler):
        """Adds counts to what GDB says."""

        def __init__(self):
            super().__init__("tailtrace")

        def __call__(self, info):
            result = disassembler.builtin_disassemble(info)
            if _state["quiet"]:
                return result
            text = note(info.address)
            if not text:
                return result
            words = f"{result.string.rstrip()}\t# {text}"
            return disassembler.DisassemblerResult(length=result.length, string=words)

    return Annotator()


def switch(on):
    if on == _state["on"]:
        return
    try:
        disassembler = importlib.import_module("gdb.disassembler")
    except ImportError:
        raise user_error("cannot annotate disassembly", f"this is GDB {gdb.VERSION}",
                         "use GDB 13 or later",
                         "tailtrace instruction-history") from None
    disassembler.register_disassembler(make(disassembler) if on else None)
    _state.update(on=on, key=None)
