"""A place in a history that can be moved in both directions."""

from typing import TYPE_CHECKING, Union

from ._core import Gap, Instruction
from .errors import PositionError

if TYPE_CHECKING:
    from .history import History


class Cursor:
    """Stands on an item of a history: reverse stepping, scripted.

    Every move returns the item it leads to; one that leads out of the history raises
    `PositionError` and moves nothing.

    >>> cursor = example_history().goto(-1)
    >>> cursor.item.text
    'ret'
    >>> cursor.step_back(3).text
    'jmp 0x1008'
    >>> cursor.step().text
    'call 0x1010'
    """

    def __init__(self, history: "History", number: int) -> None:
        self.history = history
        self._number = number

    @property
    def number(self) -> int:
        """Of the item it stands on, counted from 1."""
        return self._number

    @property
    def position(self) -> int:
        """Of the item it stands on, counted back from -1."""
        return self._number - len(self.history) - 1

    @property
    def item(self) -> Union[Instruction, Gap]:
        """What it stands on."""
        return self.history.at(self._number)

    def goto(self, position: int) -> Union[Instruction, Gap]:
        """Stands on another item, of a number from 1 or a position from -1."""
        self._number = self.history.number(position)
        return self.item

    def step(self, count: int = 1) -> Union[Instruction, Gap]:
        """Goes `count` items forward."""
        return self._move(count)

    def step_back(self, count: int = 1) -> Union[Instruction, Gap]:
        """Goes `count` items back."""
        return self._move(-count)

    def _move(self, by: int) -> Union[Instruction, Gap]:
        number = self._number + by
        if number < 1:
            raise PositionError("cannot go back so far", f"the history begins {-(number - 1)} "
                                "items later")
        if number > len(self.history):
            raise PositionError("cannot go on so far",
                                f"the history ends {number - len(self.history)} items earlier")
        return self.goto(number)

    def __repr__(self) -> str:
        return f"<Cursor on {self.item!r}>"
