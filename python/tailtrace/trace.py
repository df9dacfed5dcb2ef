"""What `tailtrace.open` returns: the threads of a recording."""

import os
import warnings
from types import TracebackType
from typing import Iterable, List, Optional, Sequence, Tuple, Type, Union

from . import _core
from .arguments import amount, code_pieces, whole_number
from .errors import Error, UsageError
from .history import History
from .words import counted

# Of a ring file: RING.md.
MOST_RING_RECORDS = 1 << 32


class Trace:
    """A recording: `threads` is a list of its histories.

    It can be used in a `with` statement; closing it lets go of its files as soon as no array, view
    or iterator shows them any more.
    """

    def __init__(self, path: str, threads: "List[_core.History]",
                 exit_status: Optional[int] = None) -> None:
        self.path = path
        self.exit_status = exit_status  # of a program that was run; -N: signal N killed it
        self.threads = [History(thread) for thread in threads]

    @classmethod
    def of(cls, path: str, threads: "Iterable[History]") -> "Trace":
        """Histories that were taken one by one, as one recording."""
        return cls(path, [thread._core for thread in threads])

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes all of it to a new folder, a bundle, for another day or machine: `open` reads it,
        and LLDB does. What LLDB cannot show of it, as a library that another one replaced, is a
        warning.

        >>> trace = tailtrace.open(example_ring(), code=[(0x1000, EXAMPLE_CODE)])
        >>> trace.save(example_ring() + ".tt")
        >>> tailtrace.open(example_ring() + ".tt").threads[0].at(-1)
        <Instruction [-1] 0x1011 ret>
        """
        remarks = _core.save([thread._core for thread in self.threads], name_of(path, "save"))
        for remark in remarks:
            warnings.warn(str(remark), RuntimeWarning, stacklevel=2)

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
        return f"<Trace {self.path!r}: {counted(len(self.threads), 'thread')}>"


def name_of(path: "Union[str, os.PathLike[str]]", verb: str) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise UsageError(f"cannot {verb} {os.fsdecode(name)!r}", "no name has a zero byte in it")
    return name


def open(path: "Union[str, os.PathLike[str]]", *,
         code: Iterable[Tuple[int, bytes]] = ()) -> Trace:
    """Opens a recording: a session's folder or a ring file, of a live or a dead process, or what
    was saved of one, a bundle or a record stream; a bundle of LLDB's, its folder or trace.json; or
    a perf.data file of `perf record`.

    A ring file knows no code; `code` gives it some, as pairs of an address and the bytes there.

    >>> trace = tailtrace.open(example_ring(), code=[(0x1000, EXAMPLE_CODE)])
    >>> trace.threads
    [<History of thread 43>]
    """
    name = name_of(path, "open")
    return Trace(os.fsdecode(name), _core.open(name, code_pieces(code)))


def record(program: "Sequence[Union[str, os.PathLike[str]]]", *, engine: str = "auto",
           ring_records: int = 1 << 16) -> Trace:
    """Runs a program to its end and returns what each of its threads did last.

    `program` is its command line. Each thread keeps `ring_records` branches, a power of two. The
    program has the terminal meanwhile; Ctrl-C ends it. The recording goes away with the histories.

    `engine` is "pt", "bts" or "lbr", the processor's own tracing; "qemu", which works anywhere; or
    "auto": "pt" or "bts" where that works, else "qemu". Hardware records the program itself, qemu
    what it forks as well. What turns out otherwise than asked, as a smaller buffer, is a warning.

    >>> trace = tailtrace.record(["/bin/true"])
    >>> trace.exit_status
    0
    """
    if isinstance(program, (str, bytes)) or not program:
        raise UsageError("cannot run the program", "it is not given as a list of words",
                         'give it as ["program", "argument"]')
    if engine not in ("auto", "pt", "bts", "lbr", "qemu"):
        raise UsageError(f"cannot record with the engine {engine!r}",
                         "from Python programs are recorded by the processor or under qemu",
                         'use engine="auto"', "tailtrace serve --engine=step (in a debugger)")
    words = [name_of(word, "run") for word in program]
    ring_records = whole_number(ring_records, "a number of records", 0, MOST_RING_RECORDS)
    if engine == "auto":
        engine = best_engine()
    if engine == "qemu":
        path, threads, status = _core.record(words, ring_records)
        return Trace(path, threads, os.waitstatus_to_exitcode(status))
    threads, status, remarks = _core.record_by_hardware(words, engine, ring_records)
    for remark in remarks:
        warnings.warn(str(remark), RuntimeWarning, stacklevel=2)
    return Trace(os.fsdecode(words[0]), threads, os.waitstatus_to_exitcode(status))


def best_engine() -> str:
    """What `record` takes for "auto"."""
    for engine in ("pt", "bts"):
        try:
            _core.try_hardware(engine)
            return engine
        except Error:
            pass
    return "qemu"


class Attached:
    """A running process that is recorded until `stop`, or the end of a `with` statement."""

    def __init__(self, pid: int, core: "_core.Attachment") -> None:
        self.pid = pid
        self._core = core

    @property
    def engine(self) -> str:
        """What records it: "pt", "bts" or "lbr"."""
        return self._core.engine

    @property
    def threads(self) -> List[int]:
        """The ids of the threads that are recorded."""
        return self._core.threads

    def take_remarks(self) -> List[Error]:
        """What turned out otherwise than asked since the last call: hardware that was passed over,
        a smaller buffer.
        """
        return self._core.take_remarks()

    def follow(self, tid: int) -> None:
        """Records a thread that came since, from now on. `snapshot` does that for all; this is for
        whoever knows of it earlier, as a debugger does, which holds it before it runs.
        """
        self._core.follow(tid)

    def snapshot(self, records: int = 1 << 20) -> Trace:
        """What each thread did last, `records` branches at most. The process stands still
        meanwhile, and goes on.
        """
        most = amount(records, "a number of records")
        return Trace(f"process {self.pid}", self._core.snapshot(most))

    def snapshot_thread(self, tid: int, records: int = 1 << 20) -> History:
        """The same of one thread, which somebody else, as a debugger, holds already: nothing is
        stopped. One that runs is refused.
        """
        most = amount(records, "a number of records")
        return History(self._core.snapshot_thread(tid, most))

    def stop(self) -> None:
        """Ends the recording. Histories that were taken stay good."""
        self._core.stop()

    def __enter__(self) -> "Attached":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Attached to process {self.pid}>"


def attach(pid: int, *, engine: str = "auto", ring_records: int = 1 << 16) -> Attached:
    """Records a process that runs already, from now on, with the processor's own tracing: the best
    of "pt", "bts" and "lbr", or the one that is named.

    >>> with tailtrace.attach(4711) as attached:  # doctest: +SKIP
    ...     time.sleep(1)
    ...     trace = attached.snapshot()
    """
    if not 0 < whole_number(pid, "a process") < 1 << 31:
        raise UsageError(f"cannot attach to process {pid}", "no process has that number")
    if engine not in ("auto", "pt", "bts", "lbr"):
        raise UsageError(f"cannot attach with the engine {engine!r}",
                         "a process that runs already is recorded by the processor",
                         'use engine="auto"', f"tailtrace serve --attach --engine=step :0 {pid}")
    most = whole_number(ring_records, "a number of records", 0, MOST_RING_RECORDS)
    return Attached(pid, _core.Attachment(pid, engine, most))


def ticks_per_second() -> int:
    """The rate of this machine's time-stamp counter, in whose ticks the times of what is recorded
    here are. It is measured, for a fiftieth of a second, and good to some 0.1 %.

    >>> tailtrace.ticks_per_second() > 1_000_000
    True
    """
    return int(_core.ticks_per_second())
