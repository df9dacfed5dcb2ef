"""What `set tailtrace ...` and `show tailtrace ...` know."""

import gdb

from . import disassembly, panes


class Setting(gdb.Parameter):
    """One setting; `kind` is GDB's, `shown` says what it is set to."""

    name, kind, start, shown = "", None, None, ""

    def __init__(self):
        super().__init__(f"tailtrace {self.name}", gdb.COMMAND_DATA, self.kind)
        self.value = self.start

    def get_show_string(self, value):
        return self.shown.format(value)


class HistorySize(Setting):
    """How many lines one command shows; 0 or `unlimited` for all."""

    set_doc = "Set how many instructions or functions one `tailtrace` command shows."
    show_doc = "Show how many instructions or functions one `tailtrace` command shows."
    name, kind, start = "history-size", gdb.PARAM_UINTEGER, 10
    shown = "One `tailtrace` command shows {}."


class Frames(Setting):
    """How many frames of the call stack `tailtrace goto` shows; 0 or `unlimited` for all."""

    set_doc = "Set how many frames of the call stack `tailtrace goto` shows."
    show_doc = "Show how many frames of the call stack `tailtrace goto` shows."
    name, kind, start = "frames", gdb.PARAM_UINTEGER, 5
    shown = "`tailtrace goto` shows {} frames."


class FoldLoops(Setting):
    """Whether a loop that went round three times or more is one line."""

    set_doc = "Set whether `tailtrace instruction-history` shows a loop as one line."
    show_doc = "Show whether `tailtrace instruction-history` shows a loop as one line."
    name, kind, start = "fold-loops", gdb.PARAM_BOOLEAN, True

    def get_show_string(self, value):
        return f"Loops are {'folded' if self.value else 'shown round by round'}."


class Server(Setting):
    """What `tailtrace run` starts."""

    set_doc = "Set the program that `tailtrace run` starts: tailtrace, or its path."
    show_doc = "Show the program that `tailtrace run` starts."
    name, kind, start = "server", gdb.PARAM_FILENAME, "tailtrace"
    shown = "`tailtrace run` starts {}."


class Engine(Setting):
    """How `tailtrace run` records."""

    set_doc = "Set how `tailtrace run` records: the best way there is, or one of them."
    show_doc = "Show how `tailtrace run` records."
    name, kind, start = "engine", gdb.PARAM_ENUM, "auto"
    shown = "`tailtrace run` records with the engine {}."

    def __init__(self):
        gdb.Parameter.__init__(self, f"tailtrace {self.name}", gdb.COMMAND_DATA, self.kind,
                               ["auto", "qemu", "step"])
        self.value = self.start


class Annotate(Setting):
    """Whether `disassemble` tells what was executed."""

    set_doc = "Set whether `disassemble` tells how often each instruction was executed."
    show_doc = "Show whether `disassemble` tells how often each instruction was executed."
    name, kind, start = "annotate", gdb.PARAM_BOOLEAN, False

    def get_set_string(self):
        wanted, self.value = self.value, False
        disassembly.switch(wanted)
        self.value = wanted
        return ""

    def get_show_string(self, value):
        return f"Disassembly is {'annotated' if self.value else 'as GDB has it'}."


class Pane(Setting):
    """Whether gef and pwndbg show a pane with the history."""

    set_doc = "Set whether the context of gef and pwndbg has a pane with what was executed last."
    show_doc = "Show whether the context of gef and pwndbg has a pane with the history."
    name, kind, start = "pane", gdb.PARAM_BOOLEAN, False

    def get_set_string(self):
        wanted, self.value = self.value, False
        self.value = panes.install() if wanted else panes.remove()
        return ""

    def get_show_string(self, value):
        return f"The pane is {'on' if self.value else 'off'}."


SETTINGS = [HistorySize, FoldLoops, Frames, Server, Engine, Annotate, Pane]


def names():
    """Of all of them, as `show` takes them."""
    return sorted(f"tailtrace {setting.name}" for setting in SETTINGS)


def install():
    for setting in SETTINGS:
        setting()
