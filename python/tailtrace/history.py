"""A thread's history: its records as arrays, its instructions as a sequence."""

import html
import itertools
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from . import _core
from ._core import Gap, Instruction
from .arrays import Columns, as_array
from .calls import Calls
from .cursor import Cursor
from .diff import Diff, diff
from .errors import PositionError
from .html_tree import tree
from .lines import Line, lines_backwards

Item = Union[Instruction, Gap]

# What a notebook shows of a long stretch.
_HTML_ITEMS = 1000


def parse_location(text: str) -> "tuple[Optional[str], Optional[int]]":
    """File and line of "FILE:LINE"; None and None of a function's name, as "std::f"."""
    file, colon, line = text.rpartition(":")
    if colon and file and not file.endswith(":") and line.isdecimal():
        return file, int(line)
    return None, None


class Loop(NamedTuple):
    """What was executed from a loop's first round to its last jump back: the items from number
    `first` to `last`. `head` is where a round begins, `back` the jump taken back last, `rounds` how
    often it was.
    """

    first: int
    last: int
    rounds: int
    head: int
    back: int


class Count(NamedTuple):
    """How often an instruction was executed; of a conditional branch also how often it was taken,
    of all others that is None.
    """

    address: int
    times: int
    taken: Optional[int]


class History:
    """One thread's instructions and gaps, oldest first, reached at random.

    Items have numbers from 1, the oldest held, and positions from -1, the newest, backwards.
    `h.at()` takes either; so do slices, where 0 is nothing:

    >>> h = example_history()
    >>> len(h)
    6
    >>> h.at(-1)
    <Instruction 6 0x1011 ret>
    >>> h.at(1)
    <Instruction 1 0x1000 nop>
    >>> h[-2:]
    <2 items of thread 43: 5 to 6>

    Making it is free: records are mapped when they are asked for, and instructions are found out
    when the first of them is.
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
        size = len(self)
        number = size + 1 + position if position < 0 else position
        if 1 <= number <= size:
            return number
        raise PositionError(f"there is no position {position}", f"the history has {size} items",
                            f"use 1 to {size}, or -1 to -{size}" if size else "")

    def at(self, position: int) -> Item:
        """The item of a number (from 1) or a position from the newest (-1).

        >>> example_history().at(-3).text
        'call 0x1010'
        """
        return self._core.at(self.number(position))

    def goto(self, position: int = -1) -> Cursor:
        """A cursor that stands on the item and walks from there, in both directions.

        >>> cursor = example_history().goto(-1)
        >>> cursor.step_back()
        <Instruction 5 0x1010 nop>
        """
        return Cursor(self, self.number(position))

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> "View": ...

    def __getitem__(self, index: Union[int, slice]) -> "Union[Item, View]":
        """An item, counted from 0 as in any sequence, or a view of a slice; nothing is copied."""
        if isinstance(index, slice):
            return View(self, range(1, len(self) + 1)[index])
        size = len(self)
        if not -size <= index < size:
            raise PositionError(f"there is no item {index}", f"the history has {size} items")
        return self._core.at(index % size + 1)

    def __iter__(self) -> Iterator[Item]:
        return iter(self[:])

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
        when the trace is closed. Only of a thread that may still be running it is a copy. Without
        NumPy it is a memoryview; see `tailtrace.RECORD_STRUCT`.

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

    def columns(self) -> Columns:
        """The records as one contiguous array per field. This copies them.

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
        if count < 0:
            return list(itertools.islice(lines_backwards(self), -count))[::-1]
        return list(lines_backwards(self))[::-1][:count]

    def diff(self, other: "History", limit: int = 100) -> "Diff":
        """Where this run and another went different ways, oldest first: other calls, or another
        path through the same function. Calls are aligned by name and paths by source line, so that
        other addresses are no difference.
        """
        return diff(self, other, limit)

    def find(self, **what: Any) -> List[Item]:
        """The items that `View.find` finds in all of the history."""
        return self[:].find(**what)

    def hits(self, location: str) -> List[Item]:
        """Every arrival at a function ("main") or source line ("parse.c:88"), oldest first.

        That is where a debugger's breakpoint would have stopped: at the first instruction of the
        function, or of the line in each function that has code of it.

        >>> len(example_program().hits("inc"))
        6
        """
        found = self.find(location=location)
        one_each = {item.address: item for item in found if isinstance(item, Instruction)}
        if parse_location(location)[0] is None:
            entries = {address for address in one_each if _core.is_entry(self._core, address)}
        else:
            lowest: Dict[Optional[str], int] = {}
            for address, item in one_each.items():
                lowest[item.function] = min(lowest.get(item.function, address), address)
            entries = set(lowest.values())
        return [item for item in found if item.address in entries]

    def last(self, location: str) -> Optional[Item]:
        """The newest instruction of a function or source line, or None. The search begins at the
        newest item and ends where it finds one.

        >>> example_program().last("main").function
        'main'
        """
        found = self[::-1].find(location=location, limit=1)
        return found[0] if found else None

    def __repr__(self) -> str:
        engine = f", {self.engine}" if self.engine else ""
        return f"<History of thread {self.tid}{engine}>"

    def _repr_html_(self) -> str:
        return self[-_HTML_ITEMS:]._repr_html_()


class View(Sequence[Item]):
    """A slice of a history, as cheap as two numbers; it can be sliced again.

    >>> view = example_history()[-4:]
    >>> len(view), view[0].number, view[::-1][0].number
    (4, 3, 6)
    >>> print(view.listing())
      (no symbol)
        [-4]  jmp   0x1008
        [-3]  call  0x1010
        [-2]  nop
        [-1]  ret                                  -> 0x100d
    <BLANKLINE>
    """

    def __init__(self, history: History, numbers: range) -> None:
        self.history = history
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> "View": ...

    def __getitem__(self, index: Union[int, slice]) -> "Union[Item, View]":
        if isinstance(index, slice):
            return View(self.history, self.numbers[index])
        size = len(self)
        if not -size <= index < size:
            raise PositionError(f"there is no item {index}", f"the view has {size} items")
        return self.history._core.at(self.numbers[index])

    def _stretch(self) -> "tuple[_core.History, int, int, int]":
        first = self.numbers[0] if self.numbers else 1
        return self.history._core, first, len(self), self.numbers.step

    def __iter__(self) -> Iterator[Item]:
        return _core.iterate(*self._stretch())

    def __reversed__(self) -> Iterator[Item]:
        return iter(self[::-1])

    def columns(self) -> Columns:
        """The instructions as one array per field: number, address, size, kind, taken, branch,
        to, record, time and gap. This makes them, at tens of millions a second.

        `taken` is -1 where there was no choice, `gap` is 0 for instructions, `branch` is a
        `RecordKind`.

        >>> [hex(a) for a in example_history()[-3:].columns()["address"]]
        ['0x1008', '0x1010', '0x1011']
        """
        return Columns(_core.item_columns(*self._stretch()))

    def calls(self) -> Calls:
        """The view as function calls; it must leave no item out."""
        first, last = self._ends()
        return Calls(self.history, first, last)

    def find(self, *, address: Optional[int] = None, function: Optional[str] = None,
             location: Optional[str] = None, kind: Optional[str] = None,
             limit: Optional[int] = None) -> List[Item]:
        """The instructions of which all holds that is given, in the view's order, `limit` at most.

        A location is "FUNCTION" or "FILE:LINE"; a function's name is whole, with or without what it
        takes; a file's path may lack its beginning; a kind is `Instruction.kind`.

        >>> [insn.number for insn in example_history()[:].find(kind="call")]
        [4]
        """
        file: Optional[str] = None
        line: Optional[int] = None
        if location is not None:
            file, line = parse_location(location)
            if file is None:
                function = location
        numbers = _core.search(*self._stretch(), address, function, file, line, kind,
                               (1 << 63) if limit is None else limit)
        return [self.history._core.at(number) for number in numbers]

    def _ends(self) -> "tuple[int, int]":
        if not self.numbers:
            return 1, 0
        if self.numbers.step not in (1, -1) and len(self) > 1:
            raise PositionError("cannot tell of every instruction", "the view leaves some out")
        ends = self.numbers[0], self.numbers[-1]
        return min(ends), max(ends)

    def listing(self, *, from_newest: bool = True, lines: bool = False, addresses: bool = False,
                bytes: bool = False, fold: bool = False) -> str:
        """The instructions as text, newest last, under headers that say where they are; with
        `fold` a loop that went round three times or more is one line.
        """
        if not self.numbers:
            return ""
        first, last = self._ends()
        return self.history._core.listing(first, last, from_newest, lines, addresses, bytes, fold)

    def counts(self, begin: int = 0, end: int = (1 << 64) - 1) -> "List[Count]":
        """How often each instruction from address `begin` to before `end` was executed, by address;
        those that were not are left out.

        >>> [(hex(c.address), c.times, c.taken) for c in example_loop(1000)[:].counts()]
        [('0x2000', 1000, None), ('0x2002', 1000, 1000)]
        """
        if not self.numbers:
            return []
        first, last = self._ends()
        return [Count(address, times, transfers if conditional else None) for
                address, times, transfers, conditional in
                self.history._core.counts(first, last, begin, end)]

    def loops(self, min_rounds: int = 3) -> "List[Loop]":
        """The outermost loops that went round so often, oldest first.

        >>> [(loop.rounds, hex(loop.head)) for loop in example_loop(1000)[:].loops()]
        [(1000, '0x2000')]
        """
        if not self.numbers:
            return []
        first, last = self._ends()
        return [Loop(*loop) for loop in self.history._core.loops(first, last, min_rounds)]

    def __repr__(self) -> str:
        tid = self.history.tid
        if not self.numbers:
            return f"<no items of thread {tid}>"
        return f"<{len(self)} items of thread {tid}: {self.numbers[0]} to {self.numbers[-1]}>"

    def _repr_html_(self) -> str:
        if self.numbers and self.numbers.step != 1:
            return f"<p>{html.escape(repr(self))}</p>"
        shown = self[-_HTML_ITEMS:]
        text = html.escape(shown.listing(lines=True, fold=True))
        return (f"<details open><summary>{html.escape(repr(self))}</summary>"
                f"{tree(self.calls()) if self.numbers else ''}"
                f"<details><summary>instructions</summary><pre>{text}</pre></details></details>")
