"""The history of a thread that runs under `tailtrace serve`.

It is asked for by number past GDB's own decoder, by packets of ours: the first page comes at once,
whatever the size of the history. The server answers each in time, if only by saying that it is at
work, so that Ctrl-C comes between two of them: an answer that GDB did not wait for would be taken
for that of whatever it asks next.
"""

import contextlib
import re
import zlib

import gdb

from .errors import user_error
from .history import History, parsed

FIX = "target remote | tailtrace serve - PROGRAM"
ESCAPED = re.compile(rb"}(.)", re.DOTALL)


@contextlib.contextmanager
def patience():
    """GDB gives up an answer that takes longer than this, and would take it for a later one."""
    before = gdb.parameter("remotetimeout")
    gdb.execute("set remotetimeout 3600", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"set remotetimeout {before}", to_string=True)


def unescaped(answer):
    return ESCAPED.sub(lambda found: bytes([found[1][0] ^ 0x20]), answer)


def ask_raw(command):
    """The bytes that the server answers to a command of ours."""
    connection = gdb.selected_inferior().connection
    if not hasattr(connection, "send_packet"):
        raise user_error("cannot ask for the history", "there is no server", FIX)
    packet = b"qTailtrace.packed:" + command.encode(errors="surrogateescape").hex().encode()
    answer = b"w"
    try:
        with patience():
            while answer == b"w":
                answer = connection.send_packet(packet)
                packet = b"qTailtrace.more"
    except KeyboardInterrupt:
        connection.send_packet(b"qTailtrace.stop")
        raise
    except gdb.error as error:
        raise user_error("cannot ask for the history", str(error), FIX) from None
    if not (answer or b"").startswith(b"z"):
        raise user_error("cannot ask for the history", "the server is not tailtrace's", FIX)
    plain = zlib.decompress(unescaped(answer[1:]))
    if plain.startswith(b"error: "):
        raise gdb.GdbError(plain[len("error: "):].decode(errors="replace").rstrip("\n"))
    return plain


def ask(command):
    """What the server answers to what would be `monitor tailtrace COMMAND`."""
    return ask_raw(command).decode(errors="replace")


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
        lines = ask(f"{command} {self.thread}")
        try:
            head, *rest = parsed(lines)
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

    def raw_records(self, first, count):
        head, _, raw = ask_raw(f"records {first} {count} {self.thread}").partition(b"\n")
        return parsed(head.decode())[0]["first"], raw

    def some_of_tree(self, limit, parts, skipped):
        head, calls = self.ask(f"call-tree {limit} {parts} {skipped}")
        return calls, head["looked_at"] if head["is_cut"] else None

    def exported(self, name, first, last):
        skipped, more = 0, True
        while more:
            more = self.ask(f"export {name} {first} {last} {skipped}")[1]
            yield from more
            skipped += len(more)

    def whole_calls(self, limit, function):
        head, calls = self.ask(f"whole-calls {limit} {function}")
        return calls, head["count"]

    def hits(self, limit, location):
        return self.ask(f"hits {limit} {location}")[1]

    def reasons(self, position, limit):
        head, groups = self.ask(f"why {position} {limit}")
        return [(group["times"], group["decisions"]) for group in groups], head["end"]

    def counts(self, begin, end):
        return self.ask(f"counts {begin:#x} {end:#x}")[1]
