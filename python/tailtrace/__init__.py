# SPDX-License-Identifier: MIT
"""The tail of a program's execution, as data.

    import tailtrace
    h = tailtrace.open("run.tt").threads[0]
    for insn in h[-20:]:
        print(insn.position, insn.text)
    h.records            # a NumPy structured array, in place
"""

try:
    from . import _core
except ImportError as error:
    from .loading import refused
    raise refused(error) from None
from ._core import Gap, Instruction
from .arrays import RECORD_STRUCT, Columns
from .calls import Call, Caller, Calls
from .cursor import Cursor, Place
from .diff import Change, Diff
from .errors import (BadInputError, Error, GapsError, GoneError, NegativeError, NoEngineError,
                     NotPermittedError, PositionError, SystemCallError, UsageError)
from .history import History
from .kinds import RecordFlag, RecordKind
from .lines import Line
from .progress import set_progress
from .trace import Attached, Trace, attach, open, record, ticks_per_second
from .view import Count, Loop, View
from .why import Decision, Reason, Why

__version__ = _core.version

__all__ = [
    "attach", "Attached", "BadInputError", "Call", "Caller", "Calls", "Change", "Columns", "Count",
    "Cursor", "Decision", "Diff", "Error", "Gap", "GapsError", "GoneError", "History",
    "Instruction", "Line", "Loop", "NegativeError", "NoEngineError", "NotPermittedError", "open",
    "Place", "PositionError", "Reason", "record", "RECORD_STRUCT", "RecordFlag", "RecordKind",
    "set_progress", "SystemCallError", "ticks_per_second", "Trace", "UsageError", "View", "Why",
]
