"""Where in the history the user stands.

GDB's own replay is moved along wherever GDB is recording and has the place; elsewhere (out of a
saved bundle, or in a part that GDB was not given) the place is ours alone.
"""

import gdb

from .errors import user_error

# Of which thread and size of history, and the item's number; None: where GDB stands.
_own = None


def recording(history):
    """GDB's own record of the thread whose history it is, or None."""
    try:
        return gdb.current_recording() if history.is_live else None
    except gdb.error:
        return None


def offset_to_gdb(record, size):
    """What GDB's numbers are less than ours: it may have been given the newest part only."""
    return size - (record.end.number - 1)


def standing(history):
    """Number of the instruction shown now; one behind the last is the present."""
    if _own is not None and _own[:2] == (history.thread, history.size):
        return _own[2]
    record = recording(history)
    if record is None or record.replay_position is None:
        return history.size + 1
    return record.replay_position.number + offset_to_gdb(record, history.size)


def is_past(history):
    return standing(history) <= history.size


def check(history, number):
    size = history.size
    if not 1 <= number <= size + 1:
        raise user_error(f"there is no instruction {number}", f"there are 1 to {size}")


def move(history, number):
    """Stands there from now on. True: GDB has moved along and has shown it."""
    global _own
    check(history, number)
    _own = None
    record = recording(history)
    if record is None:
        _own = (history.thread, history.size, number) if number <= history.size else None
        return False
    if number > history.size:
        gdb.execute("record goto end")
        return True
    inside = number - offset_to_gdb(record, history.size)
    if inside < 1:
        _own = (history.thread, history.size, number)
        return False
    gdb.execute(f"record goto {inside}")
    return True
