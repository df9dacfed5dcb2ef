"""Ring files and records written by hand, byte by byte, so that the library has no say in them."""

import os
import struct

MAGIC = b"TTRING\n\0"
HEADER_SIZE = 4096
RECORD_SIZE = 32
STATE_RUNNING, STATE_THREAD_EXITED, STATE_PROCESS_EXITED = 1, 2, 3

CONDITIONAL, JUMP, CALL, RETURN, ENABLE, DISABLE, GAP = 1, 2, 3, 4, 24, 25, 27


def record(kind, source=0, to=0, insns=0, time=0, flags=0, extra=0):
    return struct.pack("<QQQIBBH", source, to, time, insns, kind, flags, extra)


def header(capacity, written, *, pid=42, tid=43, state=STATE_PROCESS_EXITED, run_insns=0,
           stands_at=0):
    page = bytearray(HEADER_SIZE)
    struct.pack_into("<8sIIII", page, 0, MAGIC, 1, HEADER_SIZE, RECORD_SIZE, 0)
    struct.pack_into("<QiiII", page, 24, capacity, pid, tid, state, 0)
    struct.pack_into("<QQQQQ", page, 128, written * RECORD_SIZE, run_insns, 0, 0,
                     capacity * RECORD_SIZE - 1)
    struct.pack_into("<QQQQ", page, 192, stands_at, stands_at, stands_at, 0)
    return bytes(page)


def write_ring(path, records, *, capacity=128, **more):
    """`records` are all that were ever written; the ring has the last of them, as a ring does."""
    slots = [bytes(RECORD_SIZE)] * capacity
    first = max(0, len(records) - capacity)
    for position, one in enumerate(records[first:], first):
        slots[position % capacity] = one
    with open(path, "wb") as file:
        file.write(header(capacity, len(records), **more))
        file.write(b"".join(slots))
    return os.fspath(path)


# 1000 nop | 1001 jz 1005 | 1003 jmp 1008 | 1005 nop nop nop | 1008 call 1010 | 100d ret |
# 100e 06 06 (no instructions) | 1010 nop | 1011 ret
CODE = bytes.fromhex("907402eb03909090e803000000c3060690c3")
CODE_AT = 0x1000


def example_records():
    """Executes 1000 1001 1003 1008 1010 1011 and stands at 100d."""
    return [record(ENABLE, to=0x1000, extra=1),
            record(JUMP, 0x1003, 0x1008, insns=3, time=7),
            record(CALL, 0x1008, 0x1010, insns=1, time=9),
            record(RETURN, 0x1011, 0x100d, insns=2)]


EXAMPLE_ADDRESSES = [0x1000, 0x1001, 0x1003, 0x1008, 0x1010, 0x1011]


def write_example(path):
    return write_ring(path, example_records(), stands_at=0x100d)


# 2000 dec ecx | 2002 jnz 2000 | 2004 ret
LOOP_CODE = bytes.fromhex("ffc975fcc3")
LOOP_AT = 0x2000


def loop_records(rounds):
    """A loop of so many rounds, twice the number of instructions, still in it at the end."""
    taken = record(CONDITIONAL, 0x2002, 0x2000, insns=2)
    return [record(ENABLE, to=0x2000, extra=1)] + [taken] * rounds
