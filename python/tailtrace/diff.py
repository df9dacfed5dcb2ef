"""Where two runs went different ways."""

import difflib
import os
from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

from ._core import Gap, Instruction

if TYPE_CHECKING:
    from .calls import Call
    from .history import History

# Calls that are compared, the newest of each: what is further back is not looked at.
MAX_CALLS = 20_000

Token = Tuple[Optional[str], str]


class Change(NamedTuple):
    """Stretches that stand for each other and are not the same: items `here` and `there`, as
    (first, last), or None where the other has nothing instead. `what` is "calls" when other
    functions were called, "path" when the same function took another way.
    """

    what: str
    function: Optional[str]
    here: Optional[Tuple[int, int]]
    there: Optional[Tuple[int, int]]


class Diff(List[Change]):
    """The changes, oldest first; empty when both did the same.

    >>> example_program().diff(example_program())
    <no difference>
    """

    @property
    def first(self) -> Optional[Change]:
        """The first real divergence, or None."""
        return self[0] if self else None

    def __repr__(self) -> str:
        if not self:
            return "<no difference>"
        return f"<{len(self)} difference{'' if len(self) == 1 else 's'}, first {self[0]!r}>"


def token(call: "Call") -> Token:
    """What a call is known by wherever the program was loaded."""
    return call.function, os.path.basename(call.module or "")


def steps(history: "History", call: "Call") -> List[Tuple[object, int]]:
    """What was executed of a call, without addresses, each with the number of its item."""
    found: List[Tuple[object, int]] = []
    entry: Optional[int] = None
    for item in history[call.first - 1:call.last]:
        if isinstance(item, Gap):
            found.append((item.reason, item.number))
            continue
        if entry is None:
            entry = item.address
        found.append((step_name(item, entry), item.number))
    return found


def step_name(item: Instruction, entry: int) -> object:
    line = item.line
    place: object = (item.file, line) if line is not None else item.address - entry
    return place, item.kind, item.taken


def path_change(here: "History", there: "History", a: "Call", b: "Call") -> Optional[Change]:
    """The first place where the same function went another way."""
    ours, theirs = steps(here, a), steps(there, b)
    for (mine, at), (other, at_other) in zip(ours, theirs):
        if mine != other:
            return Change("path", a.function, (at, a.last), (at_other, b.last))
    if len(ours) == len(theirs):
        return None
    shorter = min(len(ours), len(theirs))
    return Change("path", a.function,
                  (ours[shorter][1], a.last) if len(ours) > shorter else None,
                  (theirs[shorter][1], b.last) if len(theirs) > shorter else None)


def items_of(calls: "List[Call]") -> Optional[Tuple[int, int]]:
    return (calls[0].first, calls[-1].last) if calls else None


def diff(here: "History", there: "History", limit: int) -> Diff:
    """At most `limit` changes."""
    ours = list(here.all_calls[-MAX_CALLS:])
    theirs = list(there.all_calls[-MAX_CALLS:])
    matcher = difflib.SequenceMatcher(None, [token(c) for c in ours], [token(c) for c in theirs],
                                      autojunk=False)
    found = Diff()
    for what, a, a_end, b, b_end in matcher.get_opcodes():
        if what != "equal":
            function = (ours[a:a_end] or theirs[b:b_end])[0].function
            found.append(Change("calls", function, items_of(ours[a:a_end]),
                                items_of(theirs[b:b_end])))
        else:
            for mine, other in zip(ours[a:a_end], theirs[b:b_end]):
                change = path_change(here, there, mine, other)
                if change is not None:
                    found.append(change)
        if len(found) >= limit:
            break
    del found[limit:]
    return found
