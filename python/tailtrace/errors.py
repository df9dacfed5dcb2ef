"""What can go wrong, with the cause and the way out.

Every exception of the package is an `Error`. It has the same four parts that the command line and
the debuggers show:

>>> import tailtrace
>>> try:
...     tailtrace.open("/nowhere")
... except tailtrace.Error as error:
...     print(error.what, "|", error.why)
cannot open /nowhere | No such file or directory
"""

from typing import Dict, Type


_CONTROL = {code: "?" for code in (*range(0x20), *range(0x7f, 0xa0))}


class Error(Exception):
    """What failed, why (as measured), how to fix it, and what works now; parts may be empty."""

    def __init__(self, what: str, why: str = "", fix: str = "", now: str = "") -> None:
        super().__init__(what, why, fix, now)
        self.what = what
        self.why = why
        self.fix = fix
        self.now = now

    def __str__(self) -> str:
        parts = [("why: ", self.why), ("fix: ", self.fix), ("now: ", self.now)]
        lines = [self.what] + [f"  {name} {text}" for name, text in parts if text]
        # Names in recordings may hold what commands a terminal.
        return "\n".join(line.translate(_CONTROL) for line in lines)


class NegativeError(Error):
    """The answer is no: what was asked for is not there."""


class UsageError(Error, ValueError):
    """Arguments that cannot be used."""


class PositionError(Error, IndexError):
    """A position that the history does not have."""


class NoEngineError(Error):
    """Nothing on this machine can record what was asked for."""


class NotPermittedError(Error):
    """The system refused."""


class BadInputError(Error, ValueError):
    """A file that cannot be understood."""


class GapsError(Error):
    """The history has gaps, and none were allowed."""


class SystemCallError(Error):
    """A system call failed."""


class GoneError(Error):
    """What was asked for is no longer there: overwritten, ended or closed."""


# The numbers of the library's ErrorCode.
_BY_CODE: Dict[int, Type[Error]] = {
    1: NegativeError, 2: UsageError, 3: NoEngineError, 4: NotPermittedError, 5: BadInputError,
    6: GapsError, 7: SystemCallError, 8: GoneError,
}


def from_parts(code: int, what: str, why: str, fix: str, now: str) -> Error:
    """The exception of an error code of the library."""
    return _BY_CODE.get(code, Error)(what, why, fix, now)
