"""How far long calls are: a line on the terminal or in the notebook, or whatever is wanted."""

import sys
import time
from typing import Callable, Optional

from . import _core

# Is called about 20 times a second with what is done, how much of it, and of how much, which is 0
# where nobody knows. At the end the two are equal.
Listener = Callable[[str, int, int], None]

PATIENCE_S = 0.3


class Bar:
    """One line on standard error, from 0.3 s on, where somebody is looking."""

    def __init__(self) -> None:
        self._what: Optional[str] = None
        self._since = 0.0
        self._shown = False

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._what != what:
            self._what, self._since, self._shown = what, time.monotonic(), False
        if done == total != 0:
            self._clear()
            return
        if time.monotonic() - self._since < PATIENCE_S or not is_watched():
            return
        share = f"{100 * done // total} %" if total else f"{time.monotonic() - self._since:.0f} s"
        sys.stderr.write(f"\r{what}: {share} ")
        sys.stderr.flush()
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * 60 + "\r")
            sys.stderr.flush()
        self._what = None


def is_watched() -> bool:
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def set_progress(listener: Optional[Listener]) -> Optional[Listener]:
    """Tells another function how far long calls are; None is nobody. Returns the one before. What
    it raises ends the call.

    >>> seen = []
    >>> before = tailtrace.set_progress(lambda what, done, total: seen.append(what))
    >>> tailtrace.set_progress(before) is not before
    True
    """
    if listener is not None and not callable(listener):
        raise TypeError(f"a listener is a function, or None, not {listener!r}")
    found: Optional[Listener] = _core.set_progress(listener)
    return found


_core.set_progress(Bar())
