"""What commands know of a history, wherever it comes from."""

import json
import re

from .errors import user_error

PIECE = 2000


# What JSON writes for control characters; a backslash of its own is left alone.
CONTROL = re.compile(r"\\\\|\\u00[01][0-9a-f]|\\[bfnrt]|[\x7f-\x9f]")


def parsed(lines):
    """Lines of JSON, with "?" for control characters: names are written to the terminal, and may
    have more that ends lines for Python."""
    text = lines.strip("\n").replace("\n", ",")
    if "\\" in text or "\x7f" in text or not text.isascii():  # seldom, and takes long
        text = CONTROL.sub(lambda found: "?" if found[0] != "\\\\" else found[0], text)
    return json.loads(f"[{text}]")


class History:
    """One thread's items and calls, each a dictionary, found by their positions: -1 is the newest,
    0 the present, where nothing was executed yet.

    items: position, address ("0x..."), bytes, text, taken, to, or position, gap, text;
    calls: position, function, level, first, last, caller, earlier, later, begun_before, or
    position, gap, text;
    loops: first, last, rounds, head, back, exit where it is known.

    Users see numbers as GDB has them, from 1, the oldest. Those of a long history are not known
    before all of it was counted, so users see its positions.
    """

    # Whether GDB itself may be recording the same, and can be moved along.
    is_live = False

    def __init__(self, thread):
        self.thread = thread  # names it: what was shown of another is not gone on with
        self._head = None

    def facts(self):
        """long, engine; stop ("0x...") where it is known; what `counted` has unless long."""
        if self._head is None:
            self._head = self.head()
        return self._head

    @property
    def key(self):
        """Tells this history from a later one of the same thread."""
        facts = self.facts()
        return self.thread, facts.get("state"), facts.get("stop")

    @property
    def is_long(self):
        return self.facts()["long"]

    @property
    def size(self):
        """How many items there are; of a long history all are counted for it."""
        if "size" not in self.facts():
            self._head = {**self._head, **self.counted()}
        return self._head["size"]

    def number(self, position):
        """As users see it."""
        return position if self.is_long else self.size + 1 + position

    def position(self, number):
        """What users mean with a number, from 1 or back from -1."""
        return number if number < 0 else number - self.size - 1

    def holds(self, position):
        return position < 0 and bool(self.some("items", position, 1))

    def first_held(self, position):
        """The position, or that of the oldest item, where it is newer."""
        if position >= 0 or (self.is_long and self.holds(position)):
            return position
        return max(position, -self.size)

    def lacks(self, position):
        """The error of an instruction that is not in it."""
        number = self.number(position)
        why = f"there are 1 to {self.size}" if self.size else "nothing was executed meanwhile"
        return user_error(f"there is no instruction {number if number > 0 else position}", why)

    def older_callers(self, position):
        """(name, pc, item) of who called before it began, if it was kept with it; innermost first.
        The item has the line of the call, if any."""
        return []

    def number_of_calls(self):
        return self.calls_head()["calls"]

    def call_number(self, position):
        return position if self.is_long else self.number_of_calls() + 1 + position

    def item(self, position):
        found = self.some("items", position, 1) if position < 0 else []
        if not found:
            raise self.lacks(position)
        return found[0]

    def call(self, position):
        return self.some("calls", position, 1)[0]

    def fetch(self, what, first, last):
        """Things from one position to another, a piece at a time; Ctrl-C stops between two."""
        while first <= last:
            things = self.some(what, first, min(PIECE, last - first + 1))
            if not things:
                return
            yield from things
            first = things[-1]["position"] + 1

    def call_tree(self, limit, parts):
        """The newest calls as wholes, in the order in which they began: position, function, level,
        first, last, times and begun_before where they hold; and how many parts of calls were looked
        at, where that hides others. More than `parts` need not be looked at."""
        calls, looked_at = self.some_of_tree(limit, parts, 0)
        more = calls
        while more:
            more, _ = self.some_of_tree(limit, parts, len(calls))
            calls += more
        return calls, looked_at

    def loops(self, first, last):
        """The loops between two items, oldest first."""
        found = []
        while first <= last:
            some = self.some("loops", first, last - first + 1)
            found += some
            if len(some) < PIECE:
                break  # an answer that was cut is longer
            first = some[-1]["last"] + 1
        return found

    def call_holding(self, position):
        """The call that an item is of; None behind the last. This finds out all calls."""
        low, high = -self.number_of_calls(), -1
        while low <= high:
            middle = (low + high) // 2
            call = self.call(middle)
            if position < call["first"]:
                high = middle - 1
            elif position > call["last"]:
                low = middle + 1
            else:
                return call
        return None

    # What each kind of history has its own way to do.

    def head(self):
        raise NotImplementedError

    def counted(self):
        """size, gaps and complete."""
        raise NotImplementedError

    def calls_head(self):
        """How many calls there are; all of them are found out for it."""
        raise NotImplementedError

    def some(self, what, first, count):
        """So many things from a position on, or fewer; what is older than all is left out."""
        raise NotImplementedError

    def raw_records(self, first, count):
        """So many branch records from one on, or the first few of them, as bytes; and the number
        of the first. They have numbers of their own, from 1 or back from -1; what is older than
        all is left out."""
        raise NotImplementedError

    def some_of_tree(self, limit, parts, skipped):
        """What call_tree() has behind the first few calls, or the first few of that."""
        raise NotImplementedError

    def whole_calls(self, limit, function):
        """The newest calls of a function of ours, newest first: position, function, first, last,
        times, caller and begun_before where they hold; and how many calls there are."""
        raise NotImplementedError

    def exported(self, name, first, last):
        """The lines of a file with the items from one to another, as other programs read it:
        "folded", stacks with how many instructions were executed in each; "lcov"."""
        raise NotImplementedError

    def hits(self, limit, location):
        """The newest arrivals at a location of ours, newest first."""
        raise NotImplementedError

    def reasons(self, position, limit):
        """Why it came to an item, or (0) to where it stands: times and decisions, items with
        "event" where one led there, newest first; and "begin", "gap" or "limit", where they end."""
        raise NotImplementedError

    def counts(self, begin, end):
        """How often the code at these addresses was executed: address, times, taken."""
        raise NotImplementedError
