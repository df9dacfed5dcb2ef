#!/usr/bin/env python3
"""Bundles whose traces are kept by processor: each thread's instructions are those that are known
to be its own, here and in stock LLDB, where there is one."""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import cpu_bundle
import lldb_stock

FIRST = 22

# Prints the items of each thread, oldest first: addresses, and errors as texts.
ITEMS = """script
for thread in lldb.process.threads:
    cursor = lldb.target.GetTrace().CreateNewCursor(lldb.SBError(), thread)
    cursor.SetForwards(True)
    cursor.Seek(0, lldb.eTraceCursorSeekTypeBeginning)
    items = []
    while cursor.HasValue():
        if cursor.IsError():
            items.append(cursor.GetError())
        elif cursor.IsInstruction():
            items.append(cursor.GetLoadAddress())
        cursor.Next()
    print("@@", thread.GetThreadID(), items)

quit
"""


def why_no_lldb():
    """Why nothing can be compared with LLDB; empty if it can."""
    if lldb_stock.why_not() or lldb_stock.version() >= FIRST:
        return lldb_stock.why_not()
    return f"LLDB {lldb_stock.version()} ends when it decodes a trace that it has loaded"


def of_lldb(folder):
    """Each thread's items as stock LLDB has them."""
    script = f"trace load {folder}/trace.json\n{ITEMS}"
    said = subprocess.run(lldb_stock.command(), text=True, check=False, input=script,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = re.findall(r"^@@ (\d+) (\[.*\])$", said.stdout, re.MULTILINE)
    return {int(tid): eval(items, {}) for tid, items in found}  # pylint: disable=eval-used


def ask(tailtrace, verb, folder, *words):
    return subprocess.run([tailtrace, verb, str(folder), *words], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def of_tailtrace(tailtrace, folder, thread):
    """A thread's instructions, the reasons of its gaps, and what is said about it."""
    said = subprocess.run([tailtrace, "history", "--json=lines", f"--thread={thread}", str(folder),
                           "all"], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    items = [json.loads(line) for line in said.stdout.splitlines()[1:]]
    addresses = [int(item["address"], 16) for item in items if "gap" not in item]
    return addresses, [item["gap"] for item in items if "gap" in item], said.stderr


def outcomes(chance, most):
    return [chance.randrange(4) != 0 for _ in range(chance.randrange(most))] + [True]


def random_cpus(seed, tids):
    """Processors that execute the threads in turn; a switch in twenty is not told."""
    chance = random.Random(seed)
    cpus = [cpu_bundle.Cpu(number) for number in (3, 45)]
    time = 1000
    for _ in range(120):
        cpu, tid, begin = chance.choice(cpus), chance.choice(tids), time + 10
        pieces, time = [], begin
        for _ in range(chance.randrange(4)):
            time += chance.randrange(1, 500)
            before = chance.choice(["", "sync", "psb"] if pieces else ["", "", "sync"])
            pieces.append((time, before, outcomes(chance, 40)))
        time += 100
        cpu.run(tid, begin, time, pieces)
    return cpus


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {str(found)[:500]} instead of {str(expected)[:500]}")


def check_threads(tailtrace, folder, known, tids, pid=cpu_bundle.PID):
    """All threads of a bundle, against what was executed and against stock LLDB."""
    lldbs = None if why_no_lldb() else of_lldb(folder)
    for tid in tids:
        addresses, _, _ = of_tailtrace(tailtrace, folder, f"{pid}.{tid}")
        check(f"{folder}: thread {tid}", addresses, known.get(tid, []))
        if lldbs is not None:
            theirs = [item for item in lldbs[tid] if isinstance(item, int)]
            check(f"{folder}: LLDB's thread {tid}", theirs, addresses)


def check_shared_processors(tailtrace, folder):
    """Threads that take turns on two processors; LLDB adds those that are not named."""
    tids = [1, 2, 3]
    for seed in range(2):
        cpus = random_cpus(seed, tids)
        path = cpu_bundle.write(folder / f"shared-{seed}", cpus, tids, named=[2])
        known, lost = cpu_bundle.known_of(cpus)
        check("instructions that can be told", all(len(known[tid]) > 100 for tid in tids), True)
        check_threads(tailtrace, path, known, tids)
        said = ask(tailtrace, "info", path)
        check("what is nobody's is told", f"error: {lost} of " in said.stderr, lost != 0)
    # The last one again as a bundle of ours, which LLDB opens as well.
    saved = folder / "saved"
    check("saving", ask(tailtrace, "save", path, str(saved)).returncode, 0)
    check_threads(tailtrace, saved, known, tids)


def check_recorded(tailtrace, folder):
    """What the command line recorded and saved is the same in stock LLDB."""
    program = pathlib.Path(tailtrace).parents[1] / "tests/programs/stairs"
    subprocess.run([tailtrace, "run", "--no-debugger", "--engine=qemu", f"--keep={folder}/session",
                    "--", program], check=True, stdout=subprocess.DEVNULL)
    check("saving", ask(tailtrace, "save", folder / "session", str(folder / "kept")).returncode, 0)
    (found,) = json.loads(ask(tailtrace, "info", folder / "kept", "--json").stdout)["threads"]
    thread = f"{found['pid']}.{found['tid']}"
    addresses, _, _ = of_tailtrace(tailtrace, folder / "kept", thread)
    check("there is something to compare", len(addresses) > 1000, True)
    check_threads(tailtrace, folder / "kept", {found["tid"]: addresses}, [found["tid"]],
                  pid=found["pid"])


def check_unloaded(tailtrace, folder):
    """LLDB shows what ran in a library that was unloaded, but of those in one place only the last
    one: the others are gaps, which is told, and what came after them is there."""
    programs = pathlib.Path(tailtrace).parents[1] / "tests/programs"
    loaded = [programs / f"{name}_{place}.so" for name, place in
              (("first", "same"), ("second", "same"), ("first", "same"), ("second", "any"))]
    session, path = folder / "unloads", folder / "unloaded"
    subprocess.run([tailtrace, "run", "--no-debugger", "--engine=qemu", f"--keep={session}", "--",
                    programs / "replaces_library", *loaded],
                   check=True, stdout=subprocess.DEVNULL)
    saved = ask(tailtrace, "save", session, str(path))
    check("what LLDB cannot show is told", re.findall(r"all that ran in (.*)", saved.stderr),
          [str(programs / "second_same.so")])
    listed = ask(tailtrace, "history", path, "--json=lines", "all").stdout.splitlines()
    items = [json.loads(line) for line in listed]
    hidden = [item for item in items if item.get("module") == str(programs / "second_same.so")]
    check("there is something that LLDB cannot show", len(hidden) > 20, True)
    shown = [int(item["address"], 16) for item in items if "address" in item and
             item.get("module") != str(programs / "second_same.so")]
    if not why_no_lldb():
        (found,) = of_lldb(path).values()
        check("LLDB's instructions", [item for item in found if isinstance(item, int)], shown)
        check("LLDB's errors", [item for item in found if not isinstance(item, int)], [])


def check_programs(tailtrace, folder):
    """Of programs that a process executed one after the other LLDB shows the last one."""
    rounds = pathlib.Path(tailtrace).parents[1] / "tests/programs/rounds"
    session, path = folder / "executes", folder / "executed"
    subprocess.run([tailtrace, "run", "--no-debugger", "--engine=qemu", f"--keep={session}",
                    "--ring=1024", "--", "/bin/sh", "-c", f"exec {rounds} 3"],
                   check=True, stdout=subprocess.DEVNULL)
    saved = ask(tailtrace, "save", session, str(path))
    check("that it is one is told", "before it executed another program" in saved.stderr, True)
    (pid,) = {found["pid"] for found in json.loads(ask(tailtrace, "info", path,
                                                       "--json").stdout)["threads"]}
    addresses, _, _ = of_tailtrace(tailtrace, session, f"{pid}#2")
    check("there is something to compare", len(addresses) > 1000, True)
    if not why_no_lldb():
        check("LLDB's instructions", of_lldb(path), {pid: addresses})


def check_missing_switches(tailtrace, folder):
    """Where a switch is missing, the neighbours bound what is a thread's, and the gap is told."""
    cpu = cpu_bundle.Cpu(0)
    ones = [True] * 9
    cpu.run(1, 100, 200, [(110, "sync", ones)], told_out=False)
    cpu.run(2, 300, 400, [(310, "sync", ones * 2)])
    cpu.run(1, 500, 600, [(510, "sync", ones * 3), (550, "psb", ones)])
    cpu.run(0, 700, 800, [(710, "sync", ones)], told_in=False, told_out=False)
    cpu.run(2, 900, 950, [(910, "", ones)])
    path = cpu_bundle.write(folder / "missing", [cpu], [1, 2])
    known = {1: cpu_bundle.executed(1, ones * 5), 2: cpu_bundle.executed(2, ones * 2)}
    check_threads(tailtrace, path, known, [1, 2])
    _, gaps, said = of_tailtrace(tailtrace, path, f"{cpu_bundle.PID}.1")
    check("the gap of thread 1", gaps, ["lost"])
    check("the block of nobody", "error: 1 of 5 pieces" in said, True)
    _, _, said = of_tailtrace(tailtrace, path, f"{cpu_bundle.PID}.2")
    check("the execution without a trace", "no trace of 1 of the 2 times" in said, True)


def check_kernel(tailtrace, folder):
    """A kernel's processors stand for threads, whoever was executed."""
    cpus = random_cpus(7, [1, 2])
    known = {cpu.number: [a for _, pieces in cpu.blocks() for _, piece in pieces for a in piece]
             for cpu in cpus}
    path = cpu_bundle.write(folder / "kernel", cpus, [1, 2],
                            kernel={"loadAddress": hex(cpu_bundle.LOOP_AT)})
    check_threads(tailtrace, path, known, known, pid=1)
    elsewhere = cpu_bundle.write(folder / "moved", cpus, [1, 2], kernel={})
    addresses, gaps, _ = of_tailtrace(tailtrace, elsewhere, f"1.{cpus[0].number}")
    check("code where none was loaded", (addresses, set(gaps)), ([], {"no-code"}))


def check_times(tailtrace, folder):
    """Times are the clock's, not the processor's."""
    cpu = cpu_bundle.Cpu(0)
    cpu.run(1, 100, 200, [(110, "sync", [True] * 3), (150, "", [True] * 3)])
    path = cpu_bundle.write(folder / "times", [cpu], [1])
    said = ask(tailtrace, "find", path, "--json=lines")
    times = {json.loads(line).get("time") for line in said.stdout.splitlines()[1:]} - {None}
    check("the times", times, {105, 145})


def check_bad(tailtrace, folder):
    """What cannot be used is an error that names it."""
    cpu = cpu_bundle.Cpu(5)
    cpu.run(1, 100, 200, [(110, "sync", [True])])
    for file, contents, word in (("5.switches", cpu.switches[:-1], "cut off"),
                                 ("5.switches", cpu.switches * 2, "not later"),
                                 ("5.switches", None, "No such file"),
                                 ("5.trace", None, "No such file")):
        path = cpu_bundle.write(folder / "bad", [cpu], [1])
        (path / file).write_bytes(contents or b"")
        if contents is None:
            (path / file).unlink()
        said = ask(tailtrace, "history", path)
        check(f"{file} is refused", said.returncode in (5, 7), True)
        check(f"{file} is named", file in said.stderr and word in said.stderr, True)
    path = cpu_bundle.write(folder / "empty", [cpu_bundle.Cpu(5)], [1])
    check("nothing was traced", ask(tailtrace, "info", path).returncode, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tailtrace", required=True)
    tailtrace = parser.parse_args().tailtrace
    if why_no_lldb():
        print(f"not compared with LLDB: {why_no_lldb()}")
    with tempfile.TemporaryDirectory() as folder:
        for checked in (check_shared_processors, check_recorded, check_unloaded, check_programs,
                        check_missing_switches, check_kernel, check_times, check_bad):
            checked(tailtrace, pathlib.Path(folder))


if __name__ == "__main__":
    main()
