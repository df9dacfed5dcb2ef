"""A pane with the history in the contexts that gef and pwndbg show at each stop; off unless
`set tailtrace pane on`."""

import importlib
import sys

import gdb

from .errors import user_error

LETTER = "T"  # of the pane in pwndbg's `context-sections`

_installed = {"gef": False, "on": False}


def lines():
    """The newest instructions, or none where nothing is recorded: a context must not fail."""
    from . import lists
    try:
        return lists.newest_lines(gdb.parameter("tailtrace history-size") or 10)
    except (gdb.error, gdb.GdbError):
        return []


def into_gef():
    """gef offers this to other scripts, in the namespace that all of them share."""
    register = getattr(sys.modules["__main__"], "register_external_context_pane", None)
    if register is None:
        return False
    if not _installed["gef"]:
        register("tailtrace", lambda: gdb.write("".join(lines())) if _installed["on"] else None,
                 lambda: "tailtrace" if _installed["on"] and lines() else None)
        _installed["gef"] = True
    return True


def into_pwndbg():
    try:
        context = importlib.import_module("pwndbg.commands.context")
        sections = context.context_sections
    except (ImportError, AttributeError):
        return False

    def section(target=None, with_banner=True, width=None):
        found = [line.rstrip("\n") for line in lines()] if _installed["on"] else []
        title = [context.pwndbg.ui.banner("tailtrace", target=target, width=width)]
        return (title if with_banner and found else []) + found

    sections[LETTER] = sections[LETTER.lower()] = section
    return True


def install():
    """True when there was somebody to give a pane to."""
    found = [into_gef(), into_pwndbg()]
    _installed["on"] = any(found)
    if not any(found):
        raise user_error("cannot show a pane", "neither gef nor pwndbg is loaded",
                         "load one of them first", "layout tailtrace")
    return True


def remove():
    _installed["on"] = False
    return False
