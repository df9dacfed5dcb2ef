#!/usr/bin/python3
"""How fast histories are as data, beside what the debuggers' own interfaces take for the same:
GDB's gdb.Record and LLDB's SBTraceCursor, all in one run.

    tests/bench/python_bench.py [BUILD_FOLDER]

One line a measurement: what, the best of three runs (of the debuggers' the only one), and how many
times longer the debuggers' interfaces take. Nothing here can fail on time.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

if "--help" in sys.argv:
    sys.exit(print(sys.modules["__main__"].__doc__))
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/release").resolve()
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests/python")]

import rings  # noqa: E402
import tailtrace  # noqa: E402

MILLION = 1_000_000

# What the debuggers walk, with our records behind both: a loop of calls, 11 instructions a round.
PROGRAM = """
static volatile int total;
__attribute__((noinline)) static void add(int n) { total += n; }
int main(int argc, char** argv) {
  (void)argv;
  for (int i = 0; i < 1000000; ++i) add(i);
  return total == argc;  /* the end */
}
"""
END = 1 + PROGRAM.splitlines().index("  return total == argc;  /* the end */")
SERVE = ["--engine=qemu", "--ring=128M"]

# In GDB: the first screen of all that was recorded, ours first; then a walk over a million
# instructions of GDB's own record that looks at two facts of each.
GDB_WALK = """
import time, gdb
def timed(what, command):
    before = time.monotonic()
    gdb.execute(command, to_string=True)
    print("measured", what, 1, time.monotonic() - before, flush=True)
gdb.execute("source {scripts}/tailtrace.py")
timed("ours", "tailtrace instruction-history")
timed("GDB's", "record instruction-history")
instructions = gdb.current_recording().instruction_history
count = min(len(instructions), 1000000)
before = time.monotonic()
for i in range(count):
    one = instructions[i]
    one.pc, one.size
print("measured", "walk", count, time.monotonic() - before, flush=True)
"""

# In LLDB: the same with its cursor, after it has decoded what it was given.
LLDB_WALK = """
import time, lldb
target = lldb.debugger.GetSelectedTarget()
thread = target.GetProcess().GetSelectedThread()
error = lldb.SBError()
before = time.monotonic()
cursor = target.GetTrace().CreateNewCursor(error, thread)
cursor.Seek(0, lldb.eTraceCursorSeekTypeEnd)
print("measured screen 1", time.monotonic() - before, flush=True)
cursor.Seek(0, lldb.eTraceCursorSeekTypeBeginning)
cursor.SetForwards(True)
count, before = 0, time.monotonic()
while cursor.HasValue() and count < 1000000:
    if cursor.IsInstruction():
        cursor.GetLoadAddress(), cursor.GetId()
        count += 1
    cursor.Next()
print("measured walk", count, time.monotonic() - before, flush=True)
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
    indices = range(-MILLION // 10, 0)
    say("100 000 instructions, each by its index",
        best(lambda: [h[index] for index in indices]), len(indices))
    return ours


def measure_first_screen(folder):
    path, code = loop(folder, 5 * MILLION)

    def screen(*opened, **more):
        tailtrace.open(*opened, **more).threads[0][-50:].listing()
    say("first 50 of 10 M instructions, from opening a ring", best(lambda: screen(path, code=code)))
    with tailtrace.open(path, code=code) as trace:
        trace.save(os.path.join(folder, "large.tt"))
    say("first 50 of 10 M instructions, from opening a bundle",
        best(lambda: screen(os.path.join(folder, "large.tt"))))
    say("count 10 M instructions",
        best(lambda: len(tailtrace.open(os.path.join(folder, "large.tt")).threads[0])))


def large_ring(folder, records, **more):
    """The file has holes, so that it takes no room."""
    path = os.path.join(folder, "large.ring")
    capacity = 1 << 27
    with open(path, "wb") as file:
        file.write(rings.header(capacity, records, **more))
        file.truncate(rings.HEADER_SIZE + capacity * rings.RECORD_SIZE)
    return path


def measure_views(folder):
    records = 100 * MILLION
    path = large_ring(folder, records, pid=os.getpid(), state=rings.STATE_RUNNING)
    first_view = lambda: tailtrace.open(path).threads[0].records[-10:].tolist()  # noqa: E731
    say("first view of 100 M records that somebody writes", best(first_view))
    path = large_ring(folder, records)
    say("first view of 100 M records, from opening", best(first_view))
    view = tailtrace.open(path).threads[0].records[-MILLION:]
    seconds = best(lambda: (view["kind"] == 3).sum())
    say("filter 1 M records by kind", seconds, len(view))
    print(f"{'':<58} {len(view) * rings.RECORD_SIZE / seconds / 2**30:10.2f} GiB/s")


def compiled(folder):
    source, program = os.path.join(folder, "walked.c"), os.path.join(folder, "walked")
    with open(source, "w") as file:
        file.write(PROGRAM)
    subprocess.run(["cc", "-O0", "-g", "-o", program, source], check=True)
    return program


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def measured(words, environment):
    """{what: (count, seconds)} as a script inside a debugger has printed it."""
    said = subprocess.run(words, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment, check=False).stdout
    found = {}
    for line in said.splitlines():
        if line.startswith("measured "):
            _, what, count, seconds = line.split()
            found[what] = int(count), float(seconds)
    return found


def in_gdb(folder, program):
    script = written(folder, "walk_gdb.py", GDB_WALK.format(scripts=ROOT / "gdb-scripts"))
    serve = " ".join([f"{BUILD}/plugin/tailtrace serve", *SERVE, "--handover=10000000 -"])
    words = ["set confirm off", "set sysroot /", "set pagination off",
             f"target remote | {serve} {program}", "record btrace pt", f"tbreak {END}", "continue",
             f"source {script}"]
    return measured(["gdb", "-nx", "-q", "-batch", *[p for w in words for p in ("-ex", w)],
                     program], dict(os.environ))


def in_lldb(folder, program):
    script = written(folder, "walk_lldb.py", LLDB_WALK)
    words = [f"breakpoint set --file walked.c --line {END}", "breakpoint set --name main", "run",
             "process trace start", "continue", f"command script import {script}"]
    environment = {**os.environ, "LLDB_DEBUGSERVER_PATH": f"{BUILD}/plugin/tailtrace-lldb-server",
                   "TAILTRACE_ENGINE": "qemu", "TAILTRACE_RING": "128M",
                   "TAILTRACE_HANDOVER": "1000000"}
    return measured(["lldb-22", "-x", "-b", *[p for w in words for p in ("-o", w)], program],
                    environment)


def say_walk(name, found, ours):
    if "walk" not in found:
        print(f"{name}: cannot be measured here")
        return
    count, seconds = found["walk"]
    say(f"{name}: iterate {count} instructions", seconds, count)
    times = seconds / count / (ours / MILLION)
    print(f"{name + ' takes as long as ours, times':<58} {times:10.1f}")


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        ours = measure_iteration(folder)
        measure_first_screen(folder)
        measure_views(folder)
        program = compiled(folder)
        gdbs = in_gdb(folder, program) if shutil.which("gdb") else {}
        for what in ("ours", "GDB's"):
            if what in gdbs:
                say(f"in GDB, first screen of 10 M instructions: {what}", gdbs[what][1])
        say_walk("gdb.Record", gdbs, ours)
        say_walk("SBTraceCursor", in_lldb(folder, program) if shutil.which("lldb-22") else {}, ours)


if __name__ == "__main__":
    main()
