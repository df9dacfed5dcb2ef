"""A place in a history that can be moved in both directions."""

from typing import TYPE_CHECKING, Iterator, NamedTuple, Optional, Tuple, Union

from ._core import Gap, Instruction
from .arguments import whole_number
from .errors import PositionError
from .words import counted

if TYPE_CHECKING:
    from .calls import Call
    from .history import History

Item = Union[Instruction, Gap]
Functions = Tuple[Optional[str], ...]


class Place(NamedTuple):
    """Where a debugger would say that something stands; what is not known is None."""

    function: Optional[str]
    file: Optional[str]
    line: Optional[int]


class Shown(NamedTuple):
    """An item as a debugger shows it: the functions around, the inlined ones last, and its place in
    the innermost of them. To how many callers it is out tells a function from itself called by it.
    """

    functions: Functions
    place: Place
    out: int

    def is_inside(self, other: "Shown") -> bool:
        """Whether it is in what is inlined into the other one's innermost function."""
        depth = len(other.functions)
        return (self.out == other.out and 0 < depth < len(self.functions) and
                self.functions[:depth] == other.functions)


class Cursor:
    """Stands on an item of a history: reverse stepping, scripted.

    Every move returns the item it leads to; one that leads out of the history, or out of what was
    recorded of a call, raises `PositionError` and moves nothing.

    >>> cursor = example_history().goto(-1)
    >>> cursor.item.text
    'ret'
    >>> cursor.step_back(3).text
    'jmp 0x1008'
    >>> cursor.step().text
    'call 0x1010'
    """

    def __init__(self, history: "History", position: int) -> None:
        self.history = history
        self._position = position
        self._outside = 0  # of so many inlined functions that begin there it has not gone into

    @property
    def number(self) -> int:
        """Of the item it stands on, counted from 1. Asking for it counts all items, once."""
        return self._position + len(self.history) + 1

    @property
    def position(self) -> int:
        """Of the item it stands on, counted back from -1."""
        return self._position

    @property
    def item(self) -> Item:
        """What it stands on."""
        return self.history.at(self._position)

    @property
    def place(self) -> Place:
        """Function and line of what it stands on. Where `next` or `next_back` led to a line that
        begins with an inlined function, that is the call of it, as in a debugger.
        """
        return self._around(self.number, self._outside)[1]

    @property
    def call(self) -> "Optional[Call]":
        """The call that the item is of. The first time this finds out all calls."""
        return self.history.all_calls.holding(self._position)

    def goto(self, position: int) -> Item:
        """Stands on another item, of a number from 1 or a position from -1."""
        self._position = self.history.position(position)
        self._outside = 0
        return self.item

    def step(self, count: int = 1) -> Item:
        """Goes `count` items forward."""
        return self._move(whole_number(count, "a number of items"))

    def step_back(self, count: int = 1) -> Item:
        """Goes `count` items back."""
        return self._move(-whole_number(count, "a number of items"))

    def next(self, count: int = 1) -> Item:
        """Goes forward to where another source line of this function begins, over the calls made
        there and what is inlined; behind its last line to the next one of what it returns to, or
        jumps to at its end, as in GDB. A line that begins with an inlined function is where that is
        called, which `place` tells.

        >>> cursor = example_program().hits("twice")[0].number
        >>> cursor = example_program().goto(cursor)
        >>> before = cursor.item.line
        >>> cursor.next().line - before
        1
        """
        return self._by_line(count, True)

    def next_back(self, count: int = 1) -> Item:
        """Goes back to the beginning of a source line, over the calls made there and what is
        inlined: of its own line when it stands in the middle of one, else of the one before; before
        the first line of a function, of the line that called it.
        """
        return self._by_line(count, False)

    def finish(self) -> Item:
        """Goes forward to where the function returned to: to what called it, or called that, if it
        ended in a jump to another function, an exception or a `longjmp`.
        """
        back = self._left(self._called())
        if back is None:
            raise PositionError("cannot go on to the return", "it was not recorded")
        return self.goto(back)

    def finish_back(self) -> Item:
        """Goes back to the instruction that called the function.

        >>> cursor = example_program().goto(example_program().last("inc").number)
        >>> cursor.finish_back().kind, cursor.item.function
        ('call', 'twice')
        """
        before = self._before(self._called())
        if before is None:
            raise PositionError("cannot go back to the call", "it was not recorded")
        return self.goto(before)

    def _called(self) -> "Call":
        call = self.call
        if call is None or call.is_gap:
            raise PositionError("cannot tell the call", "it stands on a gap")
        return call

    def _left(self, call: "Call") -> Optional[int]:
        """Where the innermost of its callers that goes on behind it does so."""
        calls = self.history.all_calls
        end = calls.last_part(call.number).last
        for caller in calls.linked(call, "caller"):
            for part in calls.linked(caller, "later"):
                if part.first > end:
                    return part.first
        return None

    def _before(self, call: "Call") -> Optional[int]:
        """What called it. A caller that is older than the history is known by its later parts."""
        caller = self.history.all_calls.number(call.caller) if call.caller else None
        return caller.last if caller and caller.last < call.first else None

    def _runs_on(self, number: int) -> bool:
        """Whether a stretch is in the frame of the one before: of the same call by another name, of
        a part that the compiler put elsewhere (what a signal's handler returns to looks like that),
        or of what that one jumped to at its end, be it its own begin. Nobody knows what a gap is
        of, so it is not gone over.
        """
        calls = self.history.all_calls
        if not 1 < number <= len(calls):
            return False
        before, call = calls.number(number - 1), calls.number(number)
        if before.is_gap or call.is_gap:
            return True
        if call.tail_called and call.caller == before.number:
            return True
        returned = getattr(self.history.at(before.last), "kind", None) == "return"
        return not call.earlier and call.caller == before.caller and not returned

    def _beside(self, number: int, forward: bool) -> "Iterator[Tuple[int, Shown]]":
        """The items executed before or after in the same frame, and then in those of its callers.
        """
        out, call = 0, self.history.all_calls.holding(number)
        while call is not None:
            at = self._behind(call, number) if forward else self._ahead(call, number)
            if at is None:
                out += 1
                at = self._left(call) if forward else self._before(call)
                if at is None:
                    return
            number, call = at, self.history.all_calls.holding(at)
            yield number, self._shown(number, out)

    def _behind(self, call: "Call", number: int) -> Optional[int]:
        if number < call.last or self._runs_on(call.number + 1):
            return number + 1
        return self.history.all_calls.number(call.later).first if call.later else None

    def _ahead(self, call: "Call", number: int) -> Optional[int]:
        if number > call.first or self._runs_on(call.number):
            return number - 1
        return self.history.all_calls.number(call.earlier).last if call.earlier else None

    def _shown(self, number: int, out: int, outside: Optional[int] = None) -> Shown:
        return Shown(*self._around(number, outside), out)

    def _around(self, number: int, outside: Optional[int]) -> "Tuple[Functions, Place]":
        """`outside`: of so many inlined functions; of all that begin there if nothing is said."""
        item = self.history.at(number)
        if isinstance(item, Gap):
            return (), Place(None, None, None)
        inlined = item.inlined
        if outside is None:
            outside = item.begins_inlined if inlined else 0
        functions = (item.function, *(function for function, _, _ in reversed(inlined[outside:])))
        _, file, line = inlined[outside - 1] if outside else (None, item.file, item.line)
        return functions, Place(functions[-1], file, line)

    def _by_line(self, count: int, forward: bool) -> Item:
        number, outside = self.number, self._outside
        forward ^= whole_number(count, "a number of lines") < 0
        for _ in range(abs(count)):
            found = self._line_after(number, outside) if forward else self._line_before(number)
            if found is None:
                raise PositionError(f"cannot go {'on' if forward else 'back'} by a line",
                                    "nothing more of the function and its callers was recorded")
            number = found
            outside = self._begins(number)
        item = self.goto(number)
        self._outside = outside
        return item

    def _begins(self, number: int) -> int:
        item = self.history.at(number)
        return 0 if isinstance(item, Gap) or not item.inlined else item.begins_inlined

    def _line_after(self, number: int, outside: int) -> Optional[int]:
        was = passed = self._shown(number, 0, outside)
        for at, shown in self._beside(number, True):
            if shown.is_inside(was):
                continue
            begins = None if self._is_line_of(shown, was) else self._begins_line(at, was)
            if begins:
                return at
            if begins is False:
                passed = shown
            elif not self._is_line_of(shown, passed):
                was = passed = shown
        return None

    def _begins_line(self, number: int, was: Shown) -> Optional[bool]:
        """Whether to stop at what is of another line than it was. As GDB does where a line or an
        inlined function begins; it goes on in the middle of a line, as of that one (None), and
        where code begins that is no statement, or of no line (False).
        """
        item = self.history.at(number)
        if isinstance(item, Gap):
            return True
        if item.line is None and (item.function,) != was.functions[:1]:
            return True
        return self._begins(number) > 0 or item.begins_line

    def _line_before(self, number: int) -> Optional[int]:
        was = passed = self._shown(number, 0)
        start = number
        for at, shown in self._beside(number, False):
            if shown.is_inside(was):
                continue
            if start == number and self._is_aside(at, shown, passed):
                passed = shown
                continue
            if not self._is_line_of(shown, was):
                if start != number:
                    return start
                if self._begins(at):
                    return at
                number = 0
            was, start = shown, at
        return start if start != number else None

    def _is_aside(self, number: int, shown: Shown, was: Shown) -> bool:
        """Whether it is one instruction of another line that is no statement, which GDB does not
        stop at either.
        """
        return (shown.out == was.out and not self._is_line_of(shown, was) and
                getattr(self.history.at(number), "begins_line", None) is False and
                not self._begins(number))

    def _is_line_of(self, shown: Shown, was: Shown) -> bool:
        """Whether two items are of one line of one function, called once."""
        return ((shown.functions[:1], shown.place[1:], shown.out) ==
                (was.functions[:1], was.place[1:], was.out))

    def _move(self, by: int) -> Item:
        position = self._position + by
        if position >= 0:
            raise PositionError("cannot go on so far",
                                f"the history ends {counted(position + 1, 'item')} earlier")
        if not self.history._holds(position):
            later = -len(self.history) - position
            raise PositionError("cannot go back so far",
                                f"the history begins {counted(later, 'item')} later")
        return self.goto(position)

    def __repr__(self) -> str:
        return f"<Cursor on {self.item!r}>"
