"""Slices of a history, and what is asked of many of its items."""

import html
from typing import (TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union,
                    overload)

from . import _core
from ._core import Gap, Instruction
from .arguments import MOST, amount, parts_of, text, whole_number
from .arrays import Columns
from .calls import Calls
from .errors import PositionError, UsageError
from .html_tree import tree
from .words import counted

if TYPE_CHECKING:
    from .history import History

Item = Union[Instruction, Gap]

# What a notebook shows of a long stretch.
HTML_ITEMS = 1000

# As many as there are.
TO_THE_END = MOST


class Wanted(NamedTuple):
    """What is searched for: all that is given must hold."""

    location: Optional[str] = None
    function: Optional[str] = None
    entries: bool = False
    kind: Optional[str] = None
    since: Optional[int] = None
    until: Optional[int] = None


class Loop(NamedTuple):
    """What was executed from a loop's first round to its last jump back: the items from number
    `first` to `last`, from 1. `head` is where a round begins, `back` the jump taken back last,
    `rounds` how often it was, `exit` the instruction at which it was left; None: it was not, or
    nobody knows.
    """

    first: int
    last: int
    rounds: int
    head: int
    back: int
    exit: Optional[int]


class Count(NamedTuple):
    """How often an instruction was executed; of a conditional branch also how often it was taken,
    of all others that is None.
    """

    address: int
    times: int
    taken: Optional[int]


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

    def __init__(self, history: "History", positions: Optional[range], start: int = -1,
                 step: int = -1) -> None:
        """Without positions: from `start` on to the oldest, which is not looked for until it is
        needed."""
        self.history = history
        self._known = positions
        self._start = start
        self._step = step

    @property
    def positions(self) -> range:
        """The positions of its items, counted back from -1.

        >>> example_history()[1::2].positions
        range(-5, 0, 2)
        """
        if self._known is None:
            self._known = range(self._start, -len(self.history) - 1, self._step)
        return self._known

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> "View": ...

    def __getitem__(self, index: Union[int, slice]) -> "Union[Item, View]":
        if isinstance(index, slice):
            return View(self.history, self.positions[slice(*parts_of(index))])
        index = whole_number(index, "an index")
        if self._known is None and index == 0:
            return self.history._item(self._start)
        size = len(self)
        if not -size <= index < size:
            raise PositionError(f"there is no item {index}", f"the view has {size} items")
        return self.history._item(self.positions[index])

    def _stretch(self) -> "tuple[_core.History, int, int, int]":
        first = self.positions[0] if self.positions else -1
        return self.history._core, first, len(self), self.positions.step

    def __iter__(self) -> Iterator[Item]:
        if self._known is None:
            return _core.iterate(self.history._core, self._start, TO_THE_END, self._step)
        return _core.iterate(*self._stretch())

    def __reversed__(self) -> Iterator[Item]:
        return iter(self[::-1])

    def columns(self) -> Columns:
        """The instructions as one array per field: position, address, size, kind, taken, branch,
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

    def find(self, *, address: Optional[int] = None, symbol: Optional[str] = None,
             location: Optional[str] = None, kind: Optional[str] = None,
             since: Optional[int] = None, until: Optional[int] = None,
             limit: Optional[int] = None) -> List[Item]:
        """The items of which all holds that is given, in the view's order, `limit` at most.

        One of `address`, `symbol` and `location` says where, as `History.hits` has locations; a
        symbol is a function's whole name, with or without what it takes. A kind is
        `Instruction.kind`, "taken", "not-taken", "gap", or an event such as "signal": that is found
        at the item behind it. `since` and `until` are times, in the thread's clock units.

        >>> [insn.number for insn in example_history()[:].find(kind="call")]
        [4]
        """
        if sum(place is not None for place in (address, symbol, location)) > 1:
            raise UsageError("cannot search", "more than one place is given",
                             "give one of address, symbol and location")
        if address is not None:
            location = f"*{whole_number(address, 'an address', 0):#x}"
        for name, given in (("a symbol", symbol), ("a location", location), ("a kind", kind)):
            if given is not None:
                text(given, name)
        if symbol == "":
            raise UsageError("cannot search", "the symbol is empty",
                             "name a function, or leave it out")
        if limit is not None:
            limit = amount(limit, "a limit")
        since, until = (None if moment is None else amount(moment, "a time")
                        for moment in (since, until))
        return self._find(Wanted(location, symbol, False, kind, since, until), limit)

    def _find(self, wanted: Wanted, limit: Optional[int]) -> List[Item]:
        if self._known is None and self._step == -1 and limit is not None:
            found = self._find_backwards(wanted, limit)
        elif self.positions:
            known = self.positions
            ends = known[0], known[-1]
            every = abs(known.step) == 1
            most = limit if every and limit is not None else TO_THE_END
            found = _core.search(self.history._core, min(ends), max(ends), known.step < 0, *wanted,
                                 most)
            found = [position for position in found if every or position in known][:limit]
        else:
            found = []
        return [self.history._item(position) for position in found]

    def _find_backwards(self, wanted: Wanted, limit: int) -> List[int]:
        """From the newest on, without asking where the oldest is."""
        h, last, size = self.history, self._start, 1 << 16
        found: List[int] = []
        while len(found) < limit and h._holds(last):
            first = last - size + 1
            if not h._holds(first):
                first = -len(h)
            found += _core.search(h._core, first, last, True, *wanted, limit - len(found))
            last, size = first - 1, size * 4
        return found

    def _ends(self) -> "tuple[int, int]":
        if not self.positions:
            return 0, -1
        if self.positions.step not in (1, -1) and len(self) > 1:
            raise PositionError("cannot tell of every instruction", "the view leaves some out")
        ends = self.positions[0], self.positions[-1]
        return min(ends), max(ends)

    def listing(self, *, from_newest: bool = True, lines: bool = False, addresses: bool = False,
                bytes: bool = False, fold: bool = False) -> str:
        """The instructions as text, newest last, under headers that say where they are; with
        `fold` a loop that went round three times or more is one line.
        """
        if not self.positions:
            return ""
        first, last = self._ends()
        options = (bool(option) for option in (from_newest, lines, addresses, bytes, fold))
        return self.history._core.listing(first, last, *options)

    def counts(self, begin: int = 0, end: int = MOST) -> "List[Count]":
        """How often each instruction from address `begin` to before `end` was executed, by address;
        those that were not are left out.

        >>> [(hex(c.address), c.times, c.taken) for c in example_loop(1000)[:].counts()]
        [('0x2000', 1000, None), ('0x2002', 1000, 1000)]
        """
        if not self.positions:
            return []
        begin, end = (amount(part, "an address") for part in (begin, end))
        first, last = self._ends()
        return [Count(address, times, transfers if conditional else None) for
                address, times, transfers, conditional in
                self.history._core.counts(first, last, begin, end)]

    def coverage(self) -> "Dict[str, Dict[int, int]]":
        """How often each source line was executed, by file and line, as `tailtrace coverage` counts
        them: as often as the instruction of it that was executed most. Lines that were not are
        there, with 0, of what anything was executed of.

        >>> files = example_program()[:].coverage()
        >>> [max(files[file].values()) for file in files if file.endswith("/three_rounds.c")]
        [6]
        """
        if not self.positions:
            return {}
        return self.history._core.coverage(*self._ends())

    def loops(self, min_rounds: int = 3) -> "List[Loop]":
        """The outermost loops that went round so often, oldest first.

        >>> [(loop.rounds, hex(loop.head)) for loop in example_loop(1000)[:].loops()]
        [(1000, '0x2000')]
        """
        if not self.positions:
            return []
        first, last = self._ends()
        rounds = amount(min_rounds, "a number of rounds")
        found = self.history._core.loops(first, last, rounds)
        before = len(self.history) + 1 if found else 0
        return [Loop(start + before, end + before, rounds, head, back, left)
                for start, end, rounds, head, back, left in found]

    def __repr__(self) -> str:
        tid = self.history.tid
        if not self.positions:
            return f"<no items of thread {tid}>"
        ends = f"{self.positions[0]} to {self.positions[-1]}"
        return f"<{counted(len(self), 'item')} of thread {tid}: {ends}>"

    def _repr_html_(self) -> str:
        if self.positions and self.positions.step != 1:
            return f"<p>{html.escape(repr(self))}</p>"
        shown = self[-HTML_ITEMS:]
        text = html.escape(shown.listing(lines=True, fold=True))
        return (f"<details open><summary>{html.escape(repr(self))}</summary>"
                f"{tree(self.calls()) if self.positions else ''}"
                f"<details><summary>instructions</summary><pre>{text}</pre></details></details>")
