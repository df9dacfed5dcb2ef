"""The history of a thread that runs under `tailtrace serve`.

It is asked for by number past GDB's own decoder, through `monitor tailtrace ...`: the first page
comes at once, whatever the size of the history.
"""

import gdb

from .errors import user_error
from .history import History, parsed

FIX = "target remote | tailtrace serve - PROGRAM"


def monitor(command):
    """What the server answers to `monitor tailtrace COMMAND`."""
    try:
        text = gdb.execute(f"monitor tailtrace {command}", to_string=True)
    except gdb.error as error:
        raise user_error("cannot ask for the history", str(error), FIX) from None
    if text.startswith("error: "):
        raise gdb.GdbError(text[len("error: "):].rstrip("\n"))
    return text


def thread_word():
    thread = gdb.selected_thread()
    if thread is None:
        raise user_error("cannot show a history", "no thread is selected",
                         "start the program first")
    pid, lwp, tid = thread.ptid
    return f"p{pid:x}.{lwp or tid:x}"


class ServerHistory(History):
    """Of the selected thread, as it stands now."""

    is_live = True

    def __init__(self):
        super().__init__(thread_word())

    def ask(self, command):
        lines = monitor(f"{command} {self.thread}").splitlines()
        try:
            head, *rest = [parsed(line) for line in lines]
            if not head["schema"].startswith("tailtrace."):
                raise KeyError
        except (ValueError, KeyError, TypeError):
            raise user_error("cannot ask for the history",
                             "the server's answer is not tailtrace's", FIX) from None
        return head, rest

    def head(self):
        return self.ask("items -1 0")[0]

    def counted(self):
        head = self.ask("items 1 0")[0]
        return {name: head[name] for name in ("size", "gaps", "complete")}

    def calls_head(self):
        return self.ask("calls 1 0")[0]

    def some(self, what, first, count):
        return self.ask(f"{what} {first} {count}")[1]

    def hits(self, limit, location):
        return self.ask(f"hits {limit} {location}")[1]

    def reasons(self, position, limit):
        head, groups = self.ask(f"why {position} {limit}")
        return [(group["times"], group["decisions"]) for group in groups], head["end"]

    def counts(self, begin, end):
        return self.ask(f"counts {begin:#x} {end:#x}")[1]
