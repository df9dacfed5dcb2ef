"""A thread's newest branches, also while it runs on: watch_ring.py RING [COUNT]

RING is a file thread.N.ring in the folder of a recording, as `tailtrace run --no-debugger
--keep=FOLDER -- PROGRAM` makes it. Needs nothing but Python: this is what a reader of a ring does,
as decoder/record/RING.md has it.
"""

import mmap
import struct
import sys

HEADER_BYTES, RECORD_BYTES = 4096, 32
RECORD = struct.Struct("<QQQIBBH")  # from, to, time, insns, kind, flags, extra
KINDS = {1: "conditional", 2: "jump", 3: "call", 4: "return", 5: "indirect jump",
         6: "indirect call", 10: "system call", 11: "system return", 18: "signal", 24: "enable",
         25: "disable"}


class Ring:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        magic, version, header, record = struct.unpack_from("<8sIII", self.bytes, 0)
        if magic != b"TTRING\n\0" or version != 1:
            raise ValueError(f"{path} is no ring of version 1")
        self.capacity, = struct.unpack_from("<Q", self.bytes, 24)
        if (header, record) != (HEADER_BYTES, RECORD_BYTES) or not self.capacity \
                or self.capacity & (self.capacity - 1) \
                or len(self.bytes) < HEADER_BYTES + self.capacity * RECORD_BYTES:
            raise ValueError(f"{path} contradicts itself")
        # Read as one aligned number: struct would put it together byte by byte while it changes.
        self._head = self.bytes[128:136].cast("Q")

    @property
    def head(self):
        """One past the position of the newest record."""
        return self._head[0] // RECORD_BYTES

    @property
    def oldest(self):
        """The slot at the head may be half written: it holds nothing."""
        return max(0, self.head - (self.capacity - 1))

    def newest(self, count):
        """(position of the first, records): the newest `count` that could be read whole."""
        end = self.head
        begin = max(self.oldest, end - count)
        slots = [HEADER_BYTES + p % self.capacity * RECORD_BYTES for p in range(begin, end)]
        copies = [bytes(self.bytes[at:at + RECORD_BYTES]) for at in slots]
        # What was overwritten while it was copied may be half old and half new.
        whole = min(max(begin, self.oldest), end)
        return whole, [RECORD.unpack(copy) for copy in copies[whole - begin:]]


def main(path, count="10"):
    first, records = Ring(path).newest(int(count))
    for position, (source, to, _, insns, kind, _, _) in enumerate(records, first):
        print(f"{position:12}  {source:#14x} -> {to:#14x}  after {insns:3} instructions  "
              f"{KINDS.get(kind, kind)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
