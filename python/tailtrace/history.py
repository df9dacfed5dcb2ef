"""A thread's history: its records as arrays, its instructions as a sequence."""

import itertools
import sys
from typing import Any, Iterator, List, Optional, Union, overload

from . import _core
from .arguments import amount, parts_of, text, whole_number
from .arrays import Columns, as_array
from .calls import Calls
from .cursor import Cursor
from .diff import Diff, diff
from .errors import NegativeError, PositionError
from .lines import Line, lines_of
from .view import HTML_ITEMS, TO_THE_END, Item, View, Wanted
from .why import Why, why


class History:
    """One thread's instructions and gaps, oldest first, reached at random.

    Items have numbers from 1, the oldest held, and positions from -1, the newest, backwards.
    `h.at()` takes either; so do slices, where 0 is nothing:

    >>> h = example_history()
    >>> len(h)
    6
    >>> h.at(-1)
    <Instruction [-1] 0x1011 ret>
    >>> h.at(1)
    <Instruction [-6] 0x1000 nop>
    >>> h[-2:]
    <2 items of thread 43: -2 to -1>

    Making it is free: records are mapped when they are asked for, and instructions are found out
    from the newest on, as far as they are asked for. Whatever needs the count of all of them
    (`len`, numbers from 1) looks at all of them once.
    """

    def __init__(self, core: "_core.History") -> None:
        self._core = core
        self._all_calls: Optional[Calls] = None

    @property
    def all_calls(self) -> Calls:
        """All of it as function calls; they are found out once."""
        if self._all_calls is None:
            self._all_calls = self.calls()
        return self._all_calls

    @property
    def pid(self) -> int:
        """The process it is of."""
        return self._core.pid

    @property
    def tid(self) -> int:
        """The thread it is of."""
        return self._core.tid

    @property
    def engine(self) -> str:
        """What recorded it: "qemu", "step", ...; empty when that is not known."""
        return self._core.engine

    @property
    def live(self) -> bool:
        """Whether the thread may still be running, as of when it was opened."""
        return self._core.live

    @property
    def complete(self) -> bool:
        """Whether its oldest item is the first instruction that was ever recorded."""
        return self._core.complete

    @property
    def gaps(self) -> int:
        """How many of the items are gaps."""
        return self._core.gaps

    @property
    def stop(self) -> Optional[int]:
        """Address of the instruction to be executed next, or None where that is not known."""
        return self._core.stop

    def __len__(self) -> int:
        """Instructions and gaps."""
        return self._core.size

    def __bool__(self) -> bool:
        return True

    def number(self, position: int) -> int:
        """The item's number, counted from 1, of a number or a position from the newest.

        >>> example_history().number(-1)
        6
        """
        return self._position(position) + len(self) + 1

    def position(self, number: int) -> int:
        """The item's position, counted back from -1, of a number or a position.

        >>> example_history().position(6)
        -1
        """
        return self._position(number)

    def _position(self, which: int) -> int:
        which = whole_number(which, "a position")
        position = which if which < 0 else which - len(self) - 1
        if which != 0 and position < 0 and self._holds(position):
            return position
        size = len(self)
        raise PositionError(f"there is no position {which}", f"the history has {size} items",
                            f"use 1 to {size}, or -1 to -{size}" if size else "")

    def _holds(self, position: int) -> bool:
        # No history is longer than what the other half can name.
        return position > -(1 << 61) and self._core.holds(position)

    def _item(self, position: int) -> Item:
        """REQUIRES: a position that is held."""
        item = self._core.at(position)
        assert item is not None
        return item

    def at(self, position: int) -> Item:
        """The item of a number (from 1) or a position from the newest (-1).

        >>> example_history().at(-3).text
        'call 0x1010'
        """
        return self._item(self._position(position))

    def goto(self, position: int = -1) -> Cursor:
        """A cursor that stands on the item and walks from there, in both directions.

        >>> cursor = example_history().goto(-1)
        >>> cursor.step_back()
        <Instruction [-2] 0x1010 nop>
        """
        return Cursor(self, self._position(position))

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> "View": ...

    def __getitem__(self, index: Union[int, slice]) -> "Union[Item, View]":
        """An item, counted from 0 as in any sequence, or a view of a slice; nothing is copied."""
        if isinstance(index, slice):
            return self._slice(index)
        index = whole_number(index, "an index")
        if index < 0 and self._holds(index):
            return self._item(index)
        size = len(self)
        if not -size <= index < size:
            raise PositionError(f"there is no item {index}", f"the history has {size} items")
        return self._item(index % size - size)

    def _slice(self, part: slice) -> "View":
        """Counts only where an end is given, or meant, that is counted from the oldest item."""
        start, stop, step = parts_of(part)
        step = 1 if step is None else step
        if step > 0 and start is not None and start < 0 and (stop is None or stop < 0):
            if self._holds(start):
                return View(self, range(start, stop or 0, step))
        if step < 0 and stop is None and (start is None or start < 0):
            newest = -1 if start is None else start
            if self._holds(newest):
                return View(self, None, newest, step)
        size = len(self)
        return View(self, range(-size, 0)[start:stop:step])

    def __iter__(self) -> Iterator[Item]:
        return iter(self[:])

    def __reversed__(self) -> Iterator[Item]:
        return iter(self[::-1])

    def instructions(self, start: Optional[int] = None, stop: Optional[int] = None) -> "View":
        """The items of a slice; `h.instructions(-20)` are the newest 20.

        >>> [insn.text for insn in example_history().instructions(-2)]
        ['nop', 'ret']
        """
        return self[start:stop]

    @property
    def records(self) -> Any:
        """The branch records in place: a read-only NumPy structured array, nothing copied.

        Its fields are from, to, time, insns, kind, flags and extra. It keeps what it shows, also
        when the trace is closed. Of a thread that runs on it is its ring itself, whose oldest
        records are overwritten as it goes: see `overwritten`. (A ring of 64 records is copied.)
        Without NumPy it is a memoryview; see `tailtrace.RECORD_STRUCT`.

        >>> h = example_history()
        >>> calls = h.records[h.records["kind"] == tailtrace.RecordKind.CALL]
        >>> [hex(call) for call in calls["from"]]
        ['0x1008']
        >>> h.records["to"][0] = 0
        Traceback (most recent call last):
            ...
        ValueError: assignment destination is read-only
        """
        return as_array(self._core.records())

    @property
    def first_record(self) -> int:
        """Position of records[0]: 0 is the first ever written."""
        return self._core.first_record

    @property
    def overwritten(self) -> int:
        """How many of `records` may be overwritten by now, from the oldest on; 0 where nobody
        writes. Of a thread that runs on, what was read of `records[n:]` is whole if `overwritten`
        is `n` at most when it is asked for afterwards.

        >>> example_history().overwritten
        0
        """
        return self._core.overwritten

    def columns(self) -> Columns:
        """The records as one contiguous array per field. This copies them; of a thread that runs
        on those that are not overwritten.

        >>> int(example_history().columns()["insns"].sum())
        6
        """
        return Columns(_core.record_columns(self._core))

    def calls(self, start: Optional[int] = None, stop: Optional[int] = None) -> Calls:
        """The items of a slice as function calls.

        >>> calls = example_program().calls(-2000)
        >>> calls[-1].is_gap
        False
        """
        return self[start:stop].calls()

    def source(self, count: int) -> "List[Line]":
        """Source lines in the order of execution: the newest of them for a negative `count`, as
        `h.source(-50)`, else the oldest. Instructions in a row of one line are one.

        >>> [line.text for line in example_program().source(-1000) if line.function == "inc"][-1]
        'static int inc(int x) { return x + 1; }'
        """
        from_newest = whole_number(count, "a number of lines") < 0
        lines = lines_of(self[::-1] if from_newest else self[:])
        found = list(itertools.islice(lines, min(abs(count), sys.maxsize)))
        return found[::-1] if from_newest else found

    def diff(self, other: "History", limit: int = 100, *, module: str = "") -> "Diff":
        """Where this run and another went different ways, oldest first: other calls, or another
        path through the same function; the rules are those of `tailtrace diff`. Other addresses are
        no difference. With a module, the end of its path, only its functions are compared; one
        that neither executed is a `UsageError`.
        """
        if not isinstance(other, History):
            raise TypeError(f"the other run is a History, not {other!r}")
        return diff(self, other, amount(limit, "a limit"), text(module, "a module"))

    def why(self, where: Union[int, str, None] = None, limit: int = 50) -> "Why":
        """The branches that decided that it came to where it stands, newest first, or to an item: a
        number, a position, or the newest arrival at a location; as `tailtrace why` tells them.

        >>> for reason in example_program().why("inc")[:3]:
        ...     print(reason.decisions[0].item.function, reason.decisions[0].item.kind)
        twice call
        main call
        main conditional
        """
        return why(self, where, amount(limit, "a limit"))

    def find(self, *, address: Optional[int] = None, symbol: Optional[str] = None,
             location: Optional[str] = None, kind: Optional[str] = None,
             since: Optional[int] = None, until: Optional[int] = None,
             limit: Optional[int] = None) -> List[Item]:
        """The items that `View.find` finds in all of the history."""
        return self[:].find(address=address, symbol=symbol, location=location, kind=kind,
                            since=since, until=until, limit=limit)

    def hits(self, location: str, *, inside: bool = False,
             limit: Optional[int] = None) -> List[Item]:
        """Every arrival at a location, oldest first; or, `inside` of it, every instruction. With a
        limit the newest of them.

        That is where a debugger's breakpoint would have stopped: at the first instruction of a
        function, or of a line in each function that has code of it. A location is "FUNCTION",
        "FILE:LINE", "FILE:FUNCTION", "MODULE`FUNCTION", "*ADDRESS", "MODULE+OFFSET" or
        "FUNCTION+OFFSET", as for `tailtrace hits`.

        >>> len(example_program().hits("inc"))
        6
        """
        wanted = Wanted(text(location, "a location"), None, not inside)
        most = TO_THE_END if limit is None else amount(limit, "a limit")
        return self[::-1]._find(wanted, most)[::-1]

    def last(self, location: str, *, inside: bool = False) -> Optional[Item]:
        """The newest of its hits, or None; `missing` tells whether there is any such place. The
        search begins at the newest item and ends where it finds one.

        >>> example_program().last("main").function
        'main'
        """
        found = self[::-1]._find(Wanted(text(location, "a location"), None, not inside), 1)
        return found[0] if found else None

    def missing(self, location: str, *, inside: bool = False) -> Optional[NegativeError]:
        """What is wrong with a location that can have no hits: no file of which code was executed
        has such a function, line or address; and what is like it. None where one has it.

        >>> example_program().missing("inc")
        >>> example_program().missing("icn").what
        'there is no function `icn`'
        """
        return _core.missing(self._core, text(location, "a location"), not inside)

    def __repr__(self) -> str:
        engine = f", {self.engine}" if self.engine else ""
        return f"<History of thread {self.tid}{engine}>"

    def _repr_html_(self) -> str:
        return self[-HTML_ITEMS:]._repr_html_()
