"""The command `tailtrace` itself, and what all its sub-commands share."""

import gdb

from .errors import user_error


class Command(gdb.Command):
    """A sub-command of `tailtrace` whose failures are errors of the user's."""

    name = ""
    completion = None  # of what GDB completes; None: `complete` decides, or nothing does

    def __init__(self):
        arguments = () if self.completion is None else (self.completion,)
        super().__init__(f"tailtrace {self.name}", gdb.COMMAND_DATA, *arguments)

    def invoke(self, argument, from_tty):
        try:
            self.run(argument or "")
        except gdb.error as error:
            raise gdb.GdbError(str(error)) from None  # in GDB's words, without a traceback


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
                             "see `help tailtrace`")
        gdb.execute("help tailtrace")


class SetTailtrace(gdb.Command):
    """What `tailtrace` commands go by."""

    def __init__(self, verb):
        super().__init__(f"{verb} tailtrace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


def install():
    Tailtrace()
    SetTailtrace("set")
    SetTailtrace("show")
