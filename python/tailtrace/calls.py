"""A history as a tree of function calls."""

from typing import TYPE_CHECKING, Iterator, NamedTuple, Optional, Sequence, Union, overload

from . import _core
from .arguments import parts_of, whole_number
from .errors import PositionError
from .html_tree import tree
from .words import counted

if TYPE_CHECKING:
    from .history import History


class Call(NamedTuple):
    """A stretch of instructions in one function, as GDB's `record function-call-history` has it.

    A function that calls another is in several of them; `earlier` and `later` lead from one to the
    next, `caller` to the one that called it (numbers of calls, 0: none). `first` and `last` are
    numbers of items of the history. A gap is one by itself.
    """

    number: int
    function: Optional[str]
    module: Optional[str]
    level: int
    first: int
    last: int
    caller: int
    earlier: int
    later: int
    tail_called: bool
    is_gap: bool


class Caller(NamedTuple):
    """Who called before the history began: `address` is in the call instruction."""

    function: Optional[str]
    module: Optional[str]
    file: Optional[str]
    line: Optional[int]
    address: int


class Calls(Sequence[Call]):
    """The calls of a stretch of a history, oldest first; `calls[0]` has number 1.

    >>> calls = example_calls()
    >>> inc = [call for call in calls if call.function == "inc"][0]
    >>> [call.function for call in calls.stack(inc.first)][:3]
    ['inc', 'twice', 'main']
    """

    def __init__(self, history: "History", first: int, last: int) -> None:
        """Of the items from one position to another."""
        self.history = history
        self._core = _core.make_calls(history._core, first, last)

    def __len__(self) -> int:
        return self._core.size

    @overload
    def __getitem__(self, index: int) -> Call: ...

    @overload
    def __getitem__(self, index: slice) -> "list[Call]": ...

    def __getitem__(self, index: "Union[int, slice]") -> "Union[Call, list[Call]]":
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[slice(*parts_of(index))]]
        index = whole_number(index, "an index")
        size = len(self)
        if not -size <= index < size:
            raise PositionError(f"there is no call {index}", f"there are {size} calls")
        return self._call(index % size + 1)

    def __iter__(self) -> Iterator[Call]:
        return (self._call(number) for number in range(1, len(self) + 1))

    def _call(self, number: int, before: Optional[int] = None) -> Call:
        """With `before` 0 the items are told by their positions, which need not be counted."""
        if before is None:
            before = len(self.history) + 1
        call = Call(*self._core.fields(number))
        return call._replace(first=call.first + before, last=call.last + before)

    def newest(self, count: int) -> "list[Call]":
        """The newest of them, with positions, from -1, in the place of the numbers of items.

        >>> example_calls().newest(1)[0].last
        -1
        """
        size = len(self)
        first = max(1, size - whole_number(count, "a number of calls", 0) + 1)
        return [self._call(number, 0) for number in range(first, size + 1)]

    def number(self, number: int) -> Call:
        """The call of a number, as `caller`, `earlier` and `later` have it."""
        if not 1 <= whole_number(number, "the number of a call") <= len(self):
            raise PositionError(f"there is no call number {number}", f"there are {len(self)} calls")
        return self._call(number)

    def holding(self, position: int) -> Optional[Call]:
        """The call that an item of the history is of, or None."""
        found = self._core.holding(self.history.position(position))
        return None if found is None else self.number(found)

    def last_part(self, number: int) -> Call:
        """The last stretch that was recorded of the call that a stretch is of, by its number.

        >>> calls = example_calls()
        >>> twice = [call for call in calls if call.function == "twice"]
        >>> calls.last_part(twice[0].number) == twice[2]
        True
        """
        return self._call(self._core.last_part(self.number(number).number))

    def stack(self, position: int) -> "list[Call]":
        """The calls that were open at an item, innermost first, as far as they were recorded."""
        call = self.holding(position)
        return [] if call is None else list(self.linked(call, "caller"))

    def linked(self, call: Call, link: str) -> Iterator[Call]:
        """The call, and those that `caller`, `earlier` or `later` leads to, from one to the next.

        Corrupt records may describe them in a circle: it ends, and some of them come again.
        """
        for _ in range(len(self)):
            yield call
            number = getattr(call, link)
            if not number:
                return
            call = self.number(number)

    def older_callers(self, position: int) -> "list[Caller]":
        """Who called the outermost call of `stack(position)` before the history began, innermost
        first: known of what has the stack of its end, as bundles of the always-on recorder have;
        and of calls that lead up to that end.
        """
        found = self._core.older_callers(self.history.position(position))
        return [Caller(*caller) for caller in found]

    def listing(self, *, from_newest: bool = True) -> str:
        """The calls as text, indented by level, newest last."""
        if len(self) == 0:
            return ""
        return self._core.listing(1, len(self), bool(from_newest))

    def _repr_html_(self) -> str:
        return tree(self)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'call')} of thread {self.history.tid}>"
