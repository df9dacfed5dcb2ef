"""The command `tailtrace` itself, and what all its sub-commands share."""

import gdb

from . import settings, styles
from .errors import user_error


# Before a list whose newest part is shown, or behind one that is newest first.
MORE = "(More came before...)\n"

# What is asked of a folder, outside of GDB.
COMMAND_LINE_ONLY = ("coverage", "diff", "find", "stats")


class Command(gdb.Command):
    """A sub-command of `tailtrace` whose failures are errors of the user's."""

    name = ""
    completion = None  # of what GDB completes; None: `complete` decides, or nothing does
    takes_words = True
    elsewhere = ()  # what it is called by LLDB's plugin and on the command line, if not that

    def __init__(self):
        arguments = () if self.completion is None else (self.completion,)
        super().__init__(f"tailtrace {self.name}", gdb.COMMAND_DATA, *arguments)

    def invoke(self, argument, from_tty):
        if argument and not self.takes_words:
            raise user_error(f"cannot use `{argument}`", f"`tailtrace {self.name}` takes nothing")
        try:
            # GDB itself writes no colours where somebody else reads what a command says.
            with styles.plain(not from_tty or styles.is_piped()):
                self.run(argument or "")
        except gdb.error as error:
            raise gdb.GdbError(str(error)) from None  # in GDB's words, without a traceback


def completed(text, word, choices):
    """The choices that go on from all that stands behind a command. GDB counts from the beginning
    of what it takes for a word, which "-", "/" and the like end. Before it knows that, it asks
    for what ends words, which is told to be nothing of ours."""
    if word is None:
        return []
    taken = len(text) - len(word)
    return [choice[taken:] for choice in choices if choice.startswith(text)]


class Tailtrace(gdb.Command):
    """Show and walk what the program did last.

A program that GDB runs itself is recorded by the processor since `tailtrace start`; one under
`tailtrace serve`, as `tailtrace run` starts it, since `record btrace`; what was saved is read with
`tailtrace load`.
Numbers count instructions from 1, the oldest; negative ones back from -1, the newest."""

    def __init__(self):
        super().__init__("tailtrace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        if argument:
            raise user_error(f"there is no command `tailtrace {argument}`", "",
                             self.meant(argument.split()[0]))
        gdb.execute("help tailtrace")

    @staticmethod
    def meant(word):
        """Where what was typed is to be had, as far as we know the word."""
        for command in Command.__subclasses__():
            if word in command.elsewhere:
                return f"tailtrace {command.name}"
        if word in COMMAND_LINE_ONLY:
            return f"`tailtrace save DIR`, and behind it `shell tailtrace {word} DIR`"
        return "see `help tailtrace`"


class SetTailtrace(gdb.Command):
    """What `tailtrace` commands go by."""

    def __init__(self, verb):
        super().__init__(f"{verb} tailtrace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)
        self.verb = verb

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError(f'Undefined {self.verb} tailtrace command: "{argument}".  '
                               f'Try "help {self.verb} tailtrace".')
        if self.verb == "set":
            gdb.execute("help set tailtrace")
        for name in settings.names() if self.verb == "show" else ():
            gdb.write(f"{name}:  ")
            gdb.execute(f"show {name}")


def install():
    Tailtrace()
    SetTailtrace("set")
    SetTailtrace("show")
