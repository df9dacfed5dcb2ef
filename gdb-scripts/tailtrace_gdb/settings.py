"""What `set tailtrace ...` and `show tailtrace ...` know."""

import gdb


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


SETTINGS = [HistorySize, FoldLoops, Frames, Server, Engine]


def install():
    for setting in SETTINGS:
        setting()
