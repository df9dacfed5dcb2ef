"""A pane with the history in the contexts that gef and pwndbg show at each stop; off unless
`set tailtrace pane on`."""

import sys

import gdb

from .errors import user_error
from .folding import newest_lines

# In pwndbg's `context-sections`, which finds them by their first letters: "t" is one of its own.
SECTION = "Tailtrace"

_installed = {"gef": False, "on": False}


def lines():
    """The newest instructions, or none where nothing is recorded: a context must not fail."""
    try:
        return newest_lines(gdb.parameter("tailtrace history-size") or 10)
    except (gdb.error, gdb.GdbError):
        return []


def into_gef():
    """gef offers this to other scripts, in the namespace that all of them share."""
    shared = sys.modules["__main__"]
    register = getattr(shared, "register_external_context_pane", None)
    if register is None:
        return False

    def show():
        found = lines() if _installed["on"] else []
        if found:  # by what gef collects; what is written past that comes before all of it
            getattr(shared, "gef_print", print)("".join(found).rstrip("\n"))

    if not _installed["gef"]:
        register("tailtrace", show, lambda: "tailtrace" if _installed["on"] and lines() else None)
        _installed["gef"] = True
    return True


def pwndbg_context():
    """The module that has pwndbg's sections, where pwndbg is loaded; else None."""
    context = sys.modules.get("pwndbg.commands.context")
    return context if hasattr(context, "context_sections") else None


def into_pwndbg():
    context = pwndbg_context()
    if context is None:
        return False

    def section(target=None, with_banner=True, width=None, **_):  # newer ones say a height, too
        found = [line.rstrip("\n") for line in lines()] if _installed["on"] else []
        title = [context.pwndbg.ui.banner("tailtrace", target=target, width=width)]
        return (title if with_banner and found else []) + found

    section.__name__ = f"context_{SECTION}"  # pwndbg takes the names of sections from there
    context.context_sections[SECTION[0]] = section
    list_in_pwndbg(context, True)
    return True


def list_in_pwndbg(context, wanted):
    """Whether the section is among those that are shown."""
    setting = context.config_context_sections
    words = [word for word in setting.value.split() if word != SECTION]
    setting.value = " ".join(words + [SECTION] * wanted)


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
    context = pwndbg_context()
    if context is not None:
        list_in_pwndbg(context, False)
    return False
