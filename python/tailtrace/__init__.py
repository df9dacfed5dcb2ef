"""The tail of a program's execution, as data.

    import tailtrace
    h = tailtrace.open("run.tt").threads[0]
    for insn in h[-20:]:
        print(insn.position, insn.text)
    h.records            # a NumPy structured array, in place
"""

from . import _core
from ._core import Gap, Instruction
from .arrays import RECORD_STRUCT
from .calls import Call, Calls
from .cursor import Cursor
from .errors import (BadInputError, Error, GapsError, GoneError, NegativeError, NoEngineError,
                     NotPermittedError, PositionError, SystemCallError, UsageError)
from .history import Count, History, Loop, View
from .kinds import RecordFlag, RecordKind
from .trace import Trace, open, record

__version__ = _core.version

__all__ = [
    "BadInputError", "Call", "Calls", "Count", "Cursor", "Error", "Gap", "GapsError", "GoneError",
    "History", "Instruction", "Loop", "NegativeError", "NoEngineError", "NotPermittedError", "open",
    "PositionError", "record", "RECORD_STRUCT", "RecordFlag", "RecordKind", "SystemCallError",
    "Trace", "UsageError", "View",
]
