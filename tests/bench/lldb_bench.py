#!/usr/bin/python3
"""What questions to one bundle cost, beside what stock LLDB takes for the same.

    tests/bench/lldb_bench.py [BUILD_FOLDER]

LLDB records a program under qemu, by our server, and saves it as a bundle that both read. One line
a question: seconds and peak memory of a whole process of ours, and of an LLDB that loads the bundle
and asks; one for what the plugin takes in an LLDB that is there already. LLDB's list of calls takes
gigabytes for a million instructions, so it is asked of a smaller bundle. Nothing here can fail on
time.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

if "--help" in sys.argv:
    sys.exit(print(sys.modules["__main__"].__doc__))
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / "build/release").resolve()
sys.path[:0] = [str(ROOT / "tests/debuggers")]

import lldb_stock  # noqa: E402

PROGRAM = BUILD / "tests/programs/rounds"
TAILTRACE = str(BUILD / "plugin/tailtrace")
INSNS_A_ROUND = 578  # nearly
MILLION = 1_000_000


def cost(command):
    """Seconds and MiB of a process, the better of two runs."""
    best = None
    for _ in range(2):
        before = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - before
        if status != 0:
            return None
        found = (seconds, usage.ru_maxrss / 1024)
        best = found if best is None else min(best, found)
    return best


def text(found):
    return f"{found[0]:9.3f} s {found[1]:7.0f} MiB" if found else f"{'failed':>23}"


def compare(what, ours, commands):
    lldb = [lldb_stock.path(), "-x", "--batch"]
    for command in commands:
        lldb += ["-o", command]
    here, there = cost(ours), cost(lldb)
    times = f"  {there[0] / here[0]:6.1f} times" if here and there else ""
    print(f"{what:<44} {text(here)}   LLDB {text(there)}{times}", flush=True)


TIMED = """
import time
import lldb

def best(debugger, command):
    found = []
    for _ in range(5):
        result = lldb.SBCommandReturnObject()
        before = time.monotonic()
        debugger.GetCommandInterpreter().HandleCommand(command, result)
        found.append(time.monotonic() - before)
        assert result.Succeeded(), result.GetError()
    print("@@ %.3f" % min(found))
"""


def in_plugin(what, bundle, command):
    """Seconds of a command of the plugin's, the best of five."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "timed.py").write_text(TIMED)
        commands = [f"plugin load {lldb_stock.plugin(TAILTRACE)}",
                    f"command script import {folder}/timed.py", f"tailtrace open {bundle}",
                    f"script timed.best(lldb.debugger, '{command}')"]
        said = subprocess.run(lldb_stock.command(), input=lldb_stock.script([], commands),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False).stdout
    seconds = re.search(r"^@@ ([0-9.]+)$", said, re.MULTILINE)
    print(f"{what:<44} {seconds[1] if seconds else 'failed':>9} s", flush=True)


def recorded(folder, instructions):
    """A bundle of so many instructions, nearly, as LLDB saves it of a program under qemu."""
    bundle = f"{folder}/{instructions}"
    commands = ["breakpoint set --name main", f"process launch -- {instructions // INSNS_A_ROUND}",
                "process trace start --buffer-size 64MiB --total-size-limit 1024MiB",
                "breakpoint set --name exit", "continue", f"trace save {bundle}", "process kill"]
    script = lldb_stock.script([f"target create {PROGRAM}"], commands)
    subprocess.run(lldb_stock.command(), input=script, text=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False,
                   env={**lldb_stock.debug_server(TAILTRACE, "qemu"), "TAILTRACE_RING": "128MiB"})
    said = subprocess.run([TAILTRACE, "info", bundle], text=True, stdout=subprocess.PIPE,
                          check=True).stdout
    return bundle, int(re.search(r"instructions +(\d+)", said)[1])


def main():
    if lldb_stock.why_not():
        print(lldb_stock.why_not())
        return
    with tempfile.TemporaryDirectory() as folder:
        large, count = recorded(folder, 10 * MILLION)
        load = [f"trace load {large}/trace.json"]
        print(f"{count} instructions")
        compare("information of the thread", [TAILTRACE, "info", large],
                load + ["thread trace dump info"])
        compare("the last 5 instructions", [TAILTRACE, "history", large, "-5,-1"],
                load + ["thread trace dump instructions --count 5"])
        in_plugin("the same by the plugin", large, "tailtrace instructions -5,-1")
        compare("the last million as text", [TAILTRACE, "history", large, "-1000000,-1"],
                load + ["thread trace dump instructions --count 1000000"])
        small, count = recorded(folder, MILLION)
        print(f"{count} instructions")
        print(f"{'all calls':<44} {text(cost([TAILTRACE, 'calls', small, 'all']))}")
        smaller, count = recorded(folder, MILLION // 20)
        print(f"{count} instructions")
        compare("all calls", [TAILTRACE, "calls", smaller, "all"],
                [f"trace load {smaller}/trace.json", "thread trace dump function-calls"])


if __name__ == "__main__":
    main()
