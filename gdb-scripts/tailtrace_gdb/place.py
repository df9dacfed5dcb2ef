"""Where in the history the user stands.

GDB's own replay is moved along wherever GDB is recording and has the place; elsewhere (out of a
saved bundle, or in a part that GDB was not given) the place is ours alone.
"""

import gdb

# Of which history, and the item's position; None: where GDB stands.
_own = None


def record_of_gdb():
    """GDB's own `record btrace`, or None; of `record full` scripts are told nothing."""
    try:
        record = gdb.current_recording()
    except gdb.error:
        return None
    return record if record is not None and record.method == "btrace" else None


def recording(history):
    """GDB's own record of the thread whose history it is, or None."""
    return record_of_gdb() if history.is_live else None


def standing(history):
    """Position of the instruction shown now; 0 is the present."""
    if _own is not None and _own[0] == history.key:
        return _own[1]
    record = recording(history)
    if record is None or record.replay_position is None:
        return 0
    return record.replay_position.number - record.end.number


def is_gdb_in_the_past():
    """Whether it is replaying, whichever history is looked at."""
    record = record_of_gdb()
    return record is not None and record.replay_position is not None


def check(history, position):
    """The position must be there; 0 is."""
    if position == 0 or history.holds(position):
        return
    raise history.lacks(position)


def move(history, position):
    """Stands there from now on. True: GDB has moved along and has shown it."""
    global _own
    check(history, position)
    _own = None
    record = recording(history)
    if record is None:
        _own = (history.key, position) if position < 0 else None
        return False
    if position == 0:
        gdb.execute("record goto end")
        return True
    # GDB decodes now. Interrupted in what follows it would end with an error of its own.
    gdb.execute("info record", to_string=True)
    # GDB may have been given the newest part only.
    inside = record.end.number + position
    if inside < 1:
        _own = (history.key, position)
        return False
    gdb.execute(f"record goto {inside}")
    return True


def oldest_of_gdb(history):
    """The oldest position that GDB has, where it is recording; else None."""
    record = recording(history)
    return None if record is None else 1 - record.end.number
