"""Nothing leaks: neither memory, nor maps, nor descriptors, nor objects of the interpreter."""

import gc
import os
import sys

import rings
import tailtrace


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def maps():
    with open("/proc/self/maps") as file:
        return sum("loop.ring" in line for line in file)


def use(path):
    with tailtrace.open(path, code=[(rings.LOOP_AT, rings.LOOP_CODE)]) as trace:
        h = trace.threads[0]
        h.records[-10:].tolist()
        h.columns()
        view = h[-3000:]
        view.columns()
        repr([insn.text for insn in view[-5:]])
        view.listing()
        for insn in view:
            if insn.number == len(h) - 100:
                break
        try:
            h.at(0)
        except tailtrace.PositionError:
            pass


def test_opening_and_closing_leaves_nothing_behind(tmp_path):
    path = rings.write_ring(tmp_path / "loop.ring", rings.loop_records(60_000), capacity=1 << 16,
                            stands_at=rings.LOOP_AT)
    for _ in range(10):
        use(path)
    gc.collect()
    memory, objects = resident_bytes(), sys.getallocatedblocks()
    descriptors, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(100):
        use(path)
    gc.collect()
    # One history that stayed would be 2 MiB; a hundred of them would be far above this.
    assert resident_bytes() - memory < 64 << 20
    assert sys.getallocatedblocks() - objects < 500
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(os.listdir("/proc/self/task")) == threads
    assert maps() == 0


def test_items_keep_their_history_and_it_goes_with_them(example_path):
    h = tailtrace.open(example_path, code=[(rings.CODE_AT, rings.CODE)]).threads[0]
    core = h._core
    before = sys.getrefcount(core)
    items = list(h)
    walk = iter(h)
    next(walk)
    assert sys.getrefcount(core) >= before + len(items)
    del h
    assert items[0].text == "nop"
    del items, walk
    gc.collect()
    assert sys.getrefcount(core) <= before
