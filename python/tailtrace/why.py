"""Why an item was executed: the branches that decided it."""

from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple, Union

from . import _core
from ._core import Gap, Instruction
from .errors import NegativeError
from .words import counted

if TYPE_CHECKING:
    from .history import History

Item = Union[Instruction, Gap]


class Decision(NamedTuple):
    """A branch or call that need not have led there, and did, or the instruction before an event
    that did. `to` is where it led, `taken` is None but of conditional branches, `event` None but of
    events, as "signal".
    """

    item: Item
    to: int
    taken: Optional[bool]
    event: Optional[str]

    @property
    def outcome(self) -> str:
        """What it did, in a word or two."""
        if self.event is not None:
            return self.event
        if self.taken is not None:
            return "taken" if self.taken else "not taken"
        return f"to {self.to:#x}"


class Reason(NamedTuple):
    """Decisions in a row, newest first, that were made so often, one round behind the other."""

    times: int
    decisions: Tuple[Decision, ...]

    def __str__(self) -> str:
        texts = [f"{getattr(one.item, 'text', '')}, {one.outcome}" for one in self.decisions]
        return "; ".join(texts) + (f"; {self.times} times" if self.times > 1 else "")


class Why(List[Reason]):
    """The reasons, newest first. `item` is what they are of, None where it stands. They end where
    nothing older is held ("begin"), at a gap ("gap"), or because enough was looked at ("limit"):
    `end`.
    """

    item: Optional[Item]
    end: str

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'reason')} of {self.item or 'where it stands'!r}>"


def why(history: "History", where: Union[int, str, None], limit: int) -> Why:
    """At most `limit` reasons."""
    if isinstance(where, str):
        found = history.last(where)
        if found is None:
            raise (history.missing(where)
                   or NegativeError(f"{where} was not reached", "it is not in what is held"))
        where = found.position
    position = history.position(-1 if where is None else where)
    groups, end, position = _core.reasons(history._core, 0 if where is None else position, limit)
    reasons = Why(Reason(times, tuple(Decision(history.at(at), to, taken, event)
                                      for at, _, to, taken, event in decisions))
                  for times, decisions in groups)
    reasons.item, reasons.end = history.at(position) if position != 0 else None, end
    return reasons
