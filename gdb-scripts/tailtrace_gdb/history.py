"""What commands know of a history, wherever it comes from."""

PIECE = 2000


class History:
    """One thread's items and calls, numbered from 1, as dictionaries:

    items: number, address ("0x..."), bytes, text, taken, to, or number, gap, text;
    calls: number, function, level, first, last, caller, earlier, later, or number, gap, text;
    loops: first, last, rounds, head, back.
    """

    # Whether GDB itself may be recording the same, and can be moved along.
    is_live = False

    def __init__(self, thread):
        self.thread = thread  # names it: what was shown of another is not gone on with
        self._head = None

    @property
    def size(self):
        """How many items there are."""
        return self.facts()["size"]

    def facts(self):
        """size, gaps, complete, engine; stop ("0x...") where it is known."""
        if self._head is None:
            self._head = self.head()
        return self._head

    def number_of_calls(self):
        return self.calls_head()["calls"]

    def item(self, number):
        return self.some("items", number, 1)[0]

    def call(self, number):
        return self.some("calls", number, 1)[0]

    def fetch(self, what, first, last):
        """Numbered things from first to last, a piece at a time; Ctrl-C stops between two."""
        while first <= last:
            things = self.some(what, first, min(PIECE, last - first + 1))
            if not things:
                return
            yield from things
            first = things[-1]["number"] + 1

    def backwards(self, what, last):
        """From last to the first of all."""
        while last >= 1:
            first = max(1, last - PIECE + 1)
            yield from reversed(list(self.fetch(what, first, last)))
            last = first - 1

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

    def counts(self, begin, end):
        """How often the code at these addresses was executed: address, times, taken."""
        raise NotImplementedError

    def call_holding(self, number):
        """The call that an item is of; None behind the last."""
        low, high = 1, self.number_of_calls()
        while low <= high:
            middle = (low + high) // 2
            call = self.call(middle)
            if number < call["first"]:
                high = middle - 1
            elif number > call["last"]:
                low = middle + 1
            else:
                return call
        return None

    # What each kind of history has its own way to do.

    def head(self):
        raise NotImplementedError

    def calls_head(self):
        raise NotImplementedError

    def some(self, what, first, count):
        raise NotImplementedError

    def find(self, limit, addresses):
        """The newest items at any of the addresses, newest first."""
        raise NotImplementedError
