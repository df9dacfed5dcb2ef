"""Numbers that records have in their columns, by name."""

import enum


class RecordKind(enum.IntEnum):
    """What a branch record tells of.

    >>> import tailtrace
    >>> tailtrace.RecordKind.CALL
    <RecordKind.CALL: 3>
    """

    NONE = 0
    CONDITIONAL = 1
    JUMP = 2
    CALL = 3
    RETURN = 4
    INDIRECT_JUMP = 5
    INDIRECT_CALL = 6
    FAR_JUMP = 7
    FAR_CALL = 8
    FAR_RETURN = 9
    SYSTEM_CALL = 10
    SYSTEM_RETURN = 11
    INTERRUPT = 16
    EXCEPTION = 17
    SIGNAL = 18
    TRANSACTION_ABORT = 19
    DISCONTINUITY = 20
    ENABLE = 24
    DISABLE = 25
    OVERFLOW = 26
    GAP = 27
    MARKER = 32
    CODE_CHANGE = 33
    TRANSACTION_BEGIN = 34
    TRANSACTION_COMMIT = 35


class RecordFlag(enum.IntFlag):
    """The bits of a record's flags."""

    KERNEL = 1
    IN_TRANSACTION = 2
    ABORT = 4
    MISPREDICTED = 8
    TIME_EXACT = 16
    SYNTHETIC = 32
    ASYNC = 64
