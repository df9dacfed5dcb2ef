"""What `tailtrace.open` returns: the threads of a recording."""

import os
from types import TracebackType
from typing import Iterable, List, Optional, Tuple, Type, Union

from . import _core
from .errors import UsageError
from .history import History


class Trace:
    """A recording: `threads` is a list of its histories.

    It can be used in a `with` statement; closing it lets go of its files as soon as no array, view
    or iterator shows them any more.
    """

    def __init__(self, path: str, threads: "List[_core.History]") -> None:
        self.path = path
        self.threads = [History(thread) for thread in threads]

    def close(self) -> None:
        """From now on its histories refuse to be used. Arrays made of them stay good."""
        for thread in self.threads:
            thread._core.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        count = len(self.threads)
        return f"<Trace {self.path!r}: {count} thread{'' if count == 1 else 's'}>"


def open(path: "Union[str, os.PathLike[str]]", *,
         code: Iterable[Tuple[int, bytes]] = ()) -> Trace:
    """Opens a recording: a session's folder, or a ring file, of a live or a dead process.

    A ring file knows no code; `code` gives it some, as pairs of an address and the bytes there.

    >>> trace = tailtrace.open(example_ring(), code=[(0x1000, EXAMPLE_CODE)])
    >>> trace.threads
    [<History of thread 43>]
    """
    name = os.fsencode(path)
    if b"\0" in name:
        raise UsageError(f"cannot open {os.fsdecode(name)!r}", "no name has a zero byte in it")
    return Trace(os.fsdecode(name), _core.open(name, list(code)))
