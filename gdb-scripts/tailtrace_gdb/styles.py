"""Colours as `set style ...` has them, where GDB itself would use any."""

import os

import gdb

COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]


def enabled():
    if not gdb.parameter("style enabled") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return os.isatty(1)


def styled(kind, text):
    """Text in the style of a "function", "filename" or "address"."""
    if not enabled():
        return text
    codes = []
    colour = gdb.parameter(f"style {kind} foreground")
    if colour in COLOURS:
        codes.append(str(30 + COLOURS.index(colour)))
    intensity = gdb.parameter(f"style {kind} intensity")
    codes += {"bold": ["1"], "dim": ["2"]}.get(intensity, [])
    return f"\033[{';'.join(codes)}m{text}\033[m" if codes else text
