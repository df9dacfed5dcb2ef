"""Columns through Arrow's PyCapsule interface, read as its specification says: with no library of
ours or anybody's in between."""

import ctypes
import gc
import os
import sys

import numpy
import pytest

FORMATS = {"L": numpy.uint64, "l": numpy.int64, "I": numpy.uint32, "S": numpy.uint16,
           "C": numpy.uint8, "c": numpy.int8}


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                   ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", ctypes.POINTER(Schema)),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
                   ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                  ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.POINTER(Array)),
                  ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
                  ("private_data", ctypes.c_void_p)]
Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                                   ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                                 ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
                   ("private_data", ctypes.c_void_p)]


def pointer(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind)).contents


def arrays_of(schema, array):
    """The columns in place, by name."""
    assert schema.format == b"+s" and schema.n_children == array.n_children
    assert array.offset == array.null_count == 0
    found = {}
    for i in range(schema.n_children):
        column, data = schema.children[i].contents, array.children[i].contents
        kind = numpy.dtype(FORMATS[column.format.decode()])
        assert (data.length, data.null_count, data.n_buffers) == (array.length, 0, 2)
        assert not data.buffers[0]
        raw = (ctypes.c_uint8 * (data.length * kind.itemsize)).from_address(data.buffers[1])
        found[column.name.decode()] = numpy.frombuffer(raw, dtype=kind)
    return found


@pytest.fixture(params=["records", "items"])
def columns(request, recorded):
    h = recorded.threads[0]
    return h.columns() if request.param == "records" else h[-5000:].columns()


def test_the_array_is_the_columns_in_place(columns):
    schema_capsule, array_capsule = columns.__arrow_c_array__()
    found = arrays_of(pointer(schema_capsule, b"arrow_schema", Schema),
                      pointer(array_capsule, b"arrow_array", Array))
    assert list(found) == list(columns)
    for name, values in columns.items():
        assert found[name].dtype == values.dtype
        assert (found[name] == values).all()
        assert found[name].ctypes.data == values.ctypes.data


def test_the_stream_is_of_one_array(columns):
    capsule = columns.__arrow_c_stream__()
    stream = pointer(capsule, b"arrow_array_stream", Stream)
    schema, array, end = Schema(), Array(), Array()
    assert stream.get_schema(stream, schema) == 0
    assert stream.get_next(stream, array) == 0
    found = arrays_of(schema, array)
    assert (found["time"] == columns["time"]).all()
    assert stream.get_next(stream, end) == 0 and not end.release
    # Children may be taken out of it, and outlive it.
    child = array.children[0].contents
    taken = Array.from_buffer_copy(child)
    child.release = type(child.release)()
    array.release(array)
    schema.release(schema)
    assert not array.release and not schema.release
    name = next(iter(columns))
    is_signed = columns[name].dtype == numpy.int64
    item = ctypes.c_int64 if is_signed else ctypes.c_uint64
    raw = (item * taken.length).from_address(taken.buffers[1])
    assert list(raw) == columns[name].tolist()
    taken.release(taken)


def test_what_nobody_takes_goes_away(columns):
    buffer = columns._buffers["time"]
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(2000):
        columns.__arrow_c_array__()
        columns.__arrow_c_stream__()
        columns.__arrow_c_schema__()
    gc.collect()
    assert sys.getallocatedblocks() - before < 200
    assert len(buffer) == len(columns["time"])


def test_pandas_takes_columns_and_records(recorded):
    pandas = pytest.importorskip("pandas", reason="python3-pandas is not installed")
    h = recorded.threads[0]
    frame = pandas.DataFrame(h.columns())
    assert len(frame) == len(h.records) and list(frame) == list(h.records.dtype.names)
    assert int(frame["insns"].sum()) == int(h.records["insns"].sum())
    items = pandas.DataFrame(h[:].columns())
    by_kind = items.groupby("kind").size()
    assert int(by_kind.sum()) == len(h)
    calls = [item for item in h if getattr(item, "kind", "") == "call"]
    branches = items[items["branch"] == 3]
    assert branches["address"].tolist() == [call.address for call in calls]


class Duckdb:
    """DuckDB's library, through its C interface."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.duckdb_value_int64.restype = ctypes.c_int64
        self.library.duckdb_value_int64.argtypes = [ctypes.c_void_p, ctypes.c_uint64,
                                                    ctypes.c_uint64]
        self.library.duckdb_result_error.restype = ctypes.c_char_p
        database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.duckdb_open(None, ctypes.byref(database)) == 0
        assert self.library.duckdb_connect(database, ctypes.byref(self.connection)) == 0

    def ask(self, query):
        """The number in the first column and row of the answer."""
        result = ctypes.create_string_buffer(64)  # a duckdb_result, with room to spare
        failed = self.library.duckdb_query(self.connection, query.encode(), result)
        assert not failed, self.library.duckdb_result_error(result)
        return self.library.duckdb_value_int64(result, 0, 0)

    def scan(self, name, capsule):
        stream = pointer(capsule, b"arrow_array_stream", Stream)
        assert self.library.duckdb_arrow_scan(self.connection, name.encode(),
                                              ctypes.byref(stream)) == 0


@pytest.mark.skipif("TAILTRACE_LIBDUCKDB" not in os.environ,
                    reason="TAILTRACE_LIBDUCKDB names no libduckdb.so")
def test_duckdb_has_the_same_numbers(columns):
    duckdb = Duckdb(os.environ["TAILTRACE_LIBDUCKDB"])
    capsule = columns.__arrow_c_stream__()
    duckdb.scan("given", capsule)
    duckdb.ask("create table taken as select * from given")
    for name, values in columns.items():
        low = [int(value) % 1000 for value in values.tolist() if value >= 0]
        assert duckdb.ask(f'select sum("{name}"::hugeint % 1000) from taken '
                          f'where "{name}" >= 0') == sum(low)
    assert duckdb.ask("select count(*) from taken") == len(columns["time"])
