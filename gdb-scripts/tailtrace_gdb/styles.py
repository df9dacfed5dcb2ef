"""Colours as `set style ...` has them, where GDB itself would use any."""

import contextlib
import os
import re

import gdb

COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]

# The parts of an instruction, in either flavour, that GDB has styles for.
PARTS = re.compile(r"""
    (?P<mnemonic>^(?:(?:rep\w*|lock|bnd|notrack|data16|addr32|rex[.\w]*|[cdefgs]s)\ +)*[a-z]\S*\ *)
  | (?P<comment>\ +\#\ .*$)
  | <(?P<function>[^>]*?)(?P<offset>\+\d+)?>
  | (?P<register>%\w+(?:\(\d\))?
     | \b(?:[re]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][lh]|[sd]il|[sb]pl|r(?:8|9|1[0-5])[dwb]?
          |[xyz]mm\d+|[cdefgs]s|st)\b)
  | (?P<immediate>\$-?0x[0-9a-f]+|(?<=,)[1248](?=\))|(?<=\*)[1248]\b)
  | (?P<address>-?0x[0-9a-f]+)""", re.VERBOSE)

_state = {"plain": 0}


@contextlib.contextmanager
def plain(wanted=True):
    """Without colours inside of it, for what is not shown but read by others."""
    _state["plain"] += wanted
    try:
        yield
    finally:
        _state["plain"] -= wanted


def is_piped():
    """Whether the user's command was `pipe ...`, of which GDB does not tell scripts."""
    last = gdb.execute("show commands", to_string=True).rstrip().rpartition("\n")[2]
    return re.match(r" *\d+ +(pipe\b|\|)", last) is not None


def enabled():
    if _state["plain"] or not gdb.parameter("style enabled"):
        return False
    return os.environ.get("TERM", "") not in ("", "dumb") and os.isatty(1)


def codes_of(kind):
    codes = []
    colour = gdb.parameter(f"style {kind} foreground")
    if colour in COLOURS:
        codes.append(str(30 + COLOURS.index(colour)))
    intensity = gdb.parameter(f"style {kind} intensity")
    return codes + {"bold": ["1"], "dim": ["2"]}.get(intensity, [])


def styled(kind, text):
    """Text in the style of a "function", "filename" or "address"."""
    codes = codes_of(kind) if text and enabled() else []
    return f"\033[{';'.join(codes)}m{text}\033[m" if codes else text


def styles_instructions():
    try:
        return enabled() and gdb.parameter("style disassembler enabled")
    except RuntimeError:
        return False  # GDB 12 knows no such thing


def styled_part(found):
    if found["function"] is not None:
        return f"<{styled('function', found['function'])}{found['offset'] or ''}>"
    kind = found.lastgroup
    name = kind if kind == "address" else f"disassembler {kind}"
    return styled(name, found[0])


def styled_instruction(text):
    """An instruction with its operands."""
    return PARTS.sub(styled_part, text) if styles_instructions() else text


def styled_place(place):
    """"<main+4>"."""
    name, plus, offset = place[1:-1].rpartition("+")
    return f"<{styled('function', name)}{plus}{offset}>" if place else ""
