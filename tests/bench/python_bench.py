#!/usr/bin/env python3
"""How fast histories are as data, beside what the debuggers' own interfaces take for the same.

    tests/bench/python_bench.py [BUILD_FOLDER]

One line a measurement: what, the best of three runs, and for GDB's and LLDB's interfaces how many
times longer they take. Nothing here can fail on time.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/release").resolve()
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests/python")]

import rings  # noqa: E402
import tailtrace  # noqa: E402

MILLION = 1_000_000

# Walks a million instructions of GDB's own record and looks at two facts of each.
GDB_WALK = """
import time, gdb
record = gdb.current_recording()
instructions = record.instruction_history
count = min(len(instructions), 1000000)
before = time.monotonic()
for i in range(count):
    one = instructions[i]
    one.pc, one.size
print("measured", count, time.monotonic() - before)
"""


def best(work, times=3):
    found = []
    for _ in range(times):
        before = time.monotonic()
        work()
        found.append(time.monotonic() - before)
    return min(found)


def say(what, seconds, count=0):
    rate = f"  {count / seconds / MILLION:8.1f} M/s" if count else ""
    print(f"{what:<58} {1000 * seconds:10.2f} ms{rate}", flush=True)


def loop(folder, rounds):
    """A ring of a loop of so many rounds, two instructions each."""
    capacity = 1 << (rounds).bit_length()
    path = rings.write_ring(os.path.join(folder, f"loop{rounds}.ring"), rings.loop_records(rounds),
                            capacity=capacity, stands_at=rings.LOOP_AT)
    return path, [(rings.LOOP_AT, rings.LOOP_CODE)]


def walk(h):
    for one in h:
        one.address, one.size


def measure_iteration(folder):
    path, code = loop(folder, MILLION // 2)
    h = tailtrace.open(path, code=code).threads[0]
    len(h)
    ours = best(lambda: walk(h))
    say("iterate 1 M instructions, two facts of each", ours, len(h))
    say("iterate 1 M instructions", best(lambda: sum(1 for _ in h)), len(h))
    say("the same as columns", best(lambda: h[:].columns()), len(h))
    return ours


def measure_first_screen(folder):
    path, code = loop(folder, 5 * MILLION)

    def screen():
        h = tailtrace.open(path, code=code).threads[0]
        h[-50:].listing()
    say("first 50 instructions of 10 M, from opening", best(screen))


def measure_views(folder):
    """A ring file of 100 million records; the file has holes, so that it takes no room."""
    records = 100 * MILLION
    capacity = 1 << 27
    path = os.path.join(folder, "large.ring")
    with open(path, "wb") as file:
        file.write(rings.header(capacity, records))
        file.truncate(rings.HEADER_SIZE + capacity * rings.RECORD_SIZE)
    say("first view of 100 M records, from opening",
        best(lambda: tailtrace.open(path).threads[0].records[-10:].tolist()))
    view = tailtrace.open(path).threads[0].records[-MILLION:]
    seconds = best(lambda: (view["kind"] == 3).sum())
    say("filter 1 M records by kind", seconds, len(view))
    print(f"{'':<58} {len(view) * rings.RECORD_SIZE / seconds / 2**30:10.2f} GiB/s")


def gdb_walk(folder):
    """GDB's own interface over the same loop, behind the server; None where that cannot run."""
    script = os.path.join(folder, "walk.py")
    with open(script, "w") as file:
        file.write(GDB_WALK)
    program = BUILD / "tests/programs/counted_loop"
    words = ["set confirm off", "set sysroot /", "set pagination off",
             f"target remote | {BUILD}/plugin/tailtrace serve --engine=qemu --ring=1M - {program}",
             "record btrace", "tbreak 13", "continue", f"source {script}"]
    said = subprocess.run(["gdb", "-nx", "-q", "-batch", *[p for w in words for p in ("-ex", w)],
                           program], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False).stdout
    for line in said.splitlines():
        if line.startswith("measured "):
            return [float(word) for word in line.split()[1:]]
    return None


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        ours = measure_iteration(folder)
        measure_first_screen(folder)
        measure_views(folder)
        found = gdb_walk(folder) if shutil.which("gdb") else None
        if found is None:
            print("gdb.Record: cannot be measured here")
            return
        count, seconds = found
        say(f"gdb.Record: iterate {int(count)} instructions", seconds, count)
        print(f"{'gdb.Record takes as long as ours, times':<58} "
              f"{seconds / count / (ours / MILLION):10.1f}")


if __name__ == "__main__":
    main()
