"""Where two runs went different ways."""

from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

from . import _core
from .words import counted

if TYPE_CHECKING:
    from .history import History

Items = Optional[Tuple[int, int]]


class Change(NamedTuple):
    """Stretches that stand for each other and are not the same: items `here` and `there`, as
    numbers (first, last), or None where the other has nothing instead. `what` is "calls" when other
    functions were called, "path" when the same function took another way. Then the forks are the
    last items that were the same, mostly the branches that went different ways, or None.
    """

    what: str
    function: Optional[str]
    here: Items
    there: Items
    fork_here: Optional[int]
    fork_there: Optional[int]


class Diff(List[Change]):
    """The changes, oldest first; empty when both did the same, or none were asked for. `more` is
    whether there are more than were asked for.

    >>> example_program().diff(example_program())
    <no difference>
    """

    more = False

    @property
    def first(self) -> Optional[Change]:
        """The first real divergence, or None."""
        return self[0] if self else None

    def __repr__(self) -> str:
        if not self:
            return "<some difference>" if self.more else "<no difference>"
        more = " or more" if self.more else ""
        return f"<{counted(len(self), 'difference', more)}, first {self[0]!r}>"


def numbers(positions: Items, before: int) -> Items:
    return None if positions is None else (positions[0] + before, positions[1] + before)


def number(position: Optional[int], before: int) -> Optional[int]:
    return None if position is None else position + before


def diff(here: "History", there: "History", limit: int, module: str) -> Diff:
    """At most `limit` changes."""
    changes, more = _core.diff(here._core, there._core, module, limit)
    ours, theirs = len(here) + 1, len(there) + 1
    found = Diff(Change("path" if is_path else "calls", function, numbers(a, ours),
                        numbers(b, theirs), number(fork_a, ours), number(fork_b, theirs))
                 for is_path, function, a, b, fork_a, fork_b in changes)
    found.more = more
    return found
