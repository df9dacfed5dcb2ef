"""The records in place: what they show, that nobody writes them, and whom they keep alive."""

import copy
import gc
import os
import pickle
import struct

import children
import numpy
import pytest
import rings
import tailtrace


def unpacked(records):
    return [struct.unpack("<QQQIBBH", one) for one in records]


def test_are_what_was_written(example):
    assert example.records.tolist() == unpacked(rings.example_records())
    assert example.records.dtype.names == ("from", "to", "time", "insns", "kind", "flags", "extra")
    assert example.records.dtype.itemsize == 32
    assert example.first_record == 0


@pytest.mark.parametrize("capacity", [64, 128, 1024])
@pytest.mark.parametrize("written", [0, 1, 63, 64, 65, 127, 128, 129, 1000, 1024, 5000])
def test_of_a_ring_that_went_round_are_in_order(tmp_path, capacity, written):
    every = [rings.record(rings.JUMP, source=i, to=i + 1) for i in range(written)]
    path = rings.write_ring(tmp_path / "a.ring", every, capacity=capacity)
    h = tailtrace.open(path).threads[0]
    held = min(written, capacity - 1)  # one slot is always being written
    assert h.first_record == written - held
    assert h.records["from"].tolist() == list(range(written - held, written))


def test_are_not_copied(open_loop):
    h = open_loop(100_000, 1 << 17)
    one, other = h.records, h.records
    assert one.__array_interface__["data"] == other.__array_interface__["data"]
    assert one[-1000:].base is not None
    # The very pages of the file: what is written into it now shows.
    with open(h_path(h), "r+b") as file:
        file.seek(rings.HEADER_SIZE + 5 * 32 + 16)
        file.write(struct.pack("<Q", 12345))
    assert h.records["time"][5] == 12345


def h_path(h):
    """The ring file that this process has mapped for the history's records."""
    address = h.records.__array_interface__["data"][0]
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(n, 16) for n in line.split()[0].split("-"))
            if begin <= address < end:
                return line.split(maxsplit=5)[5].strip()
    raise AssertionError("the records are not mapped")


def test_cannot_be_written(example):
    with pytest.raises(ValueError):
        example.records["to"] = 0
    assert not example.records.flags.writeable
    with pytest.raises(ValueError):
        example.records.flags.writeable = True
    with pytest.raises(TypeError):
        memoryview(example._core.records()).cast("B")[0] = 1


def test_outlive_their_owners(example_path):
    trace = tailtrace.open(example_path)
    records = trace.threads[0].records
    view = records[1:]
    trace.close()
    os.unlink(example_path)
    del trace, records
    gc.collect()
    assert view.tolist() == unpacked(rings.example_records()[1:])


def test_columns_hold_the_same(open_loop):
    h = open_loop(5000, 1024)
    columns = h.columns()
    assert list(columns) == list(h.records.dtype.names)
    for name, column in columns.items():
        assert column.flags.c_contiguous
        assert column.dtype == h.records.dtype[name]
        numpy.testing.assert_array_equal(column, h.records[name])


def test_columns_are_handed_to_other_processes_as_arrays(open_loop):
    columns = open_loop(100, 1024).columns()
    for taken in pickle.loads(pickle.dumps(columns)), copy.deepcopy(columns):
        assert type(taken) is dict and list(taken) == list(columns)
        for name, column in columns.items():
            numpy.testing.assert_array_equal(taken[name], column)


def written_on(path, capacity, written):
    """The writer of a ring writes one more record, all of whose numbers are its position."""
    with open(path, "r+b") as file:
        file.seek(rings.HEADER_SIZE + written % capacity * rings.RECORD_SIZE)
        file.write(rings.record(rings.JUMP, written, written))
        file.seek(128)
        file.write(struct.pack("<Q", (written + 1) * rings.RECORD_SIZE))


def test_of_a_thread_that_runs_on_are_overwritten_from_the_oldest_on(tmp_path):
    capacity, written = 128, 1000
    every = [rings.record(rings.JUMP, n, n) for n in range(written)]
    path = rings.write_ring(tmp_path / "live.ring", every, capacity=capacity, pid=os.getpid(),
                            state=rings.STATE_RUNNING)
    h = tailtrace.open(path).threads[0]
    records = h.records
    assert h.live and h.overwritten == 0
    truth = list(range(written - (capacity - 1), written))
    assert records["from"].tolist() == truth
    for more in range(1, 6):
        written_on(path, capacity, written + more - 1)
        assert h.overwritten == more
        assert records["from"][h.overwritten:].tolist() == truth[more:]
    # It is the ring itself: the new ones stand where the oldest were.
    assert records["from"][:4].tolist() == [1001, 1002, 1003, 1004]
    assert h.columns()["from"].tolist() == truth[5:]
    for more in range(6, 200):
        written_on(path, capacity, written + more - 1)
    assert h.overwritten == len(records)
    assert len(h.columns()["from"]) == 0


def test_of_a_thread_that_runs_on_and_a_small_ring_do_not_change(tmp_path):
    path = rings.write_ring(tmp_path / "live.ring", [rings.record(rings.JUMP, n, n) for n in
                                                     range(100)], capacity=64, pid=os.getpid(),
                            state=rings.STATE_RUNNING)
    h = tailtrace.open(path).threads[0]
    records = h.records
    for written in range(100, 120):
        written_on(path, 64, written)
    assert records["from"].tolist() == list(range(37, 100)) and h.overwritten == 0


def test_without_numpy_are_a_memoryview(tmp_path, example_path):
    script = tmp_path / "without_numpy.py"
    script.write_text("""if True:
        import struct, sys
        sys.modules["numpy"] = None
        import tailtrace
        h = tailtrace.open(sys.argv[1]).threads[0]
        assert isinstance(h.records, memoryview) and h.records.readonly
        print(list(struct.iter_unpack(tailtrace.RECORD_STRUCT, h.records[1:3])))
        print(h.columns()["insns"].tolist())
    """)
    said = children.run_script(script, example_path)
    assert said.splitlines() == [str(unpacked(rings.example_records()[1:3])),
                                          "[0, 3, 1, 2]"]


def test_kinds_have_the_librarys_names():
    for kind in tailtrace.RecordKind:
        assert tailtrace._core.kind_name(kind) == kind.name.lower().replace("_", "-")
    known = {int(kind) for kind in tailtrace.RecordKind}
    for kind in set(range(256)) - known:
        assert tailtrace._core.kind_name(kind) == "unknown"
