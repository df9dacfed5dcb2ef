"""Branch records of the selected thread as data, for scripts inside GDB.

They are fetched by number, past GDB's own decoder: of a server by packets of ours, as many at once
as an answer holds.
"""

import struct

from . import source
from .errors import user_error

# Of a record, for `struct.iter_unpack`, and for `numpy.frombuffer`.
RECORD_STRUCT = "<QQQIBBH"
RECORD_DTYPE = [("from", "<u8"), ("to", "<u8"), ("time", "<u8"), ("insns", "<u4"), ("kind", "u1"),
                ("flags", "u1"), ("extra", "<u2")]
SIZE = struct.calcsize(RECORD_STRUCT)
MOST = 1 << 61


def records(first=-1000, count=None):
    """The records from one on, numbered from 1, the oldest held, or back from -1, the newest: as
    many as asked for, or all that are newer. What is older than all is left out.

    They are bytes, 32 of each (decoder/record/RECORD.md):
    `struct.iter_unpack(RECORD_STRUCT, records())`, or `numpy.frombuffer(records(), RECORD_DTYPE)`.
    """
    if first == 0 or (count is not None and count < 0):
        why = "there is no such stretch" if first else "no record is number 0"
        raise user_error("cannot fetch records", why,
                         "count from 1, the oldest, or back from -1, the newest")
    history = source.current()
    wanted = min(MOST if count is None else count, -first if first < 0 else MOST)
    return b"".join(pieces(history, first, wanted))


def pieces(history, first, wanted):
    while wanted > 0:
        at, raw = history.raw_records(first, wanted)
        if not raw:
            return
        yield raw
        behind = at + len(raw) // SIZE
        first, wanted = behind, wanted - (behind - first)
