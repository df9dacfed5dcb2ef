"""Arrow's files, as far as ours use them, read as Arrow's specification and that of FlatBuffers
say: tables of integers without nulls."""

import struct

import numpy

MAGIC = b"ARROW1"
SCHEMA, BATCH = 1, 3
INT = 2


class Table:
    """A table of FlatBuffers."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - self.number("<i", at)

    def number(self, form, at):
        return struct.unpack_from(form, self.data, at)[0]

    @classmethod
    def root(cls, data):
        return cls(data, struct.unpack_from("<I", data)[0])

    def place(self, slot):
        size = self.number("<H", self.fields)
        assert size % 2 == 0 and self.fields + size <= len(self.data)
        offset = self.number("<H", self.fields + 4 + 2 * slot) if 4 + 2 * slot < size else 0
        return self.at + offset if offset else None

    def get(self, slot, form, default=0):
        at = self.place(slot)
        if at is None:
            return default
        assert at % struct.calcsize(form) == 0, "a number is not aligned"
        return self.number(form, at)

    def target(self, slot):
        at = self.place(slot)
        return at + self.number("<I", at)

    def table(self, slot):
        return Table(self.data, self.target(slot))

    def text(self, slot):
        at = self.target(slot)
        size = self.number("<I", at)
        assert self.data[at + 4 + size] == 0
        return self.data[at + 4:at + 4 + size].decode()

    def tables(self, slot):
        at = self.target(slot)
        places = range(at + 4, at + 4 + 4 * self.number("<I", at), 4)
        return [Table(self.data, place + self.number("<I", place)) for place in places]

    def structures(self, slot, form):
        at = self.target(slot)
        count = self.number("<I", at)
        assert count == 0 or (at + 4) % 8 == 0
        return [struct.unpack_from(form, self.data, at + 4 + i * struct.calcsize(form))
                for i in range(count)]


def kinds(schema):
    """The columns' names and NumPy types."""
    found = {}
    for field in schema.tables(1):
        assert field.get(2, "B") == INT and not field.get(1, "B") and not field.tables(5)
        sort = "i" if field.table(3).get(1, "B") else "u"
        found[field.text(0)] = numpy.dtype(f"<{sort}{field.table(3).get(0, '<i') // 8}")
    return found


def message(data, at):
    """(message, where its body begins)."""
    mark, size = struct.unpack_from("<II", data, at)
    assert mark == 0xFFFFFFFF and at % 8 == 0 and size % 8 == 0
    found = Table.root(data[at + 8:at + 8 + size])
    assert found.get(0, "<h") == 4
    return found, at + 8 + size


def read(path):
    """A list of batches, each a dictionary of NumPy arrays."""
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC + b"\0\0") and data.endswith(MAGIC)
    size = struct.unpack_from("<I", data, len(data) - 10)[0]
    footer = Table.root(data[len(data) - 10 - size:len(data) - 10])
    columns = kinds(footer.table(1))
    # A reader of streams takes what lies before the footer.
    first, at = message(data, 8)
    assert first.get(1, "B") == SCHEMA and kinds(first.table(2)) == columns
    batches = []
    for offset, head, body in footer.structures(3, "<qi4xq"):
        assert offset == at and footer.structures(2, "<qi4xq") == []
        found, at = message(data, offset)
        assert found.get(1, "B") == BATCH and found.get(3, "<q") == body and at == offset + head
        batches.append(rows(found.table(2), columns, data[at:at + body]))
        at += body
    assert struct.unpack_from("<II", data, at) == (0xFFFFFFFF, 0)
    return batches


def rows(batch, columns, body):
    length = batch.get(0, "<q")
    assert batch.structures(1, "<qq") == [(length, 0)] * len(columns)
    buffers = batch.structures(2, "<qq")
    assert len(buffers) == 2 * len(columns)
    found = {}
    for (name, kind), missing, (offset, size) in zip(columns.items(), buffers[::2], buffers[1::2]):
        assert missing[1] == 0 and offset % 8 == 0 and size == length * kind.itemsize
        found[name] = numpy.frombuffer(body, kind, length, offset)
    return found
