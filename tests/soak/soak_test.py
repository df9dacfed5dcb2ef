"""A program whose threads come and go is recorded, stopped, queried and stepped back, again and
again, by stock GDB and stock LLDB over `tailtrace serve`.

    soak_test.py [--seconds=N] [ENGINE...] [gdb] [lldb]      an hour: --seconds=3600

At every stop the history is what was stepped before, as the debugger saw it step by step, and the
server's memory and descriptors are no more in the second half of the time than in the first.
Unless `--seconds` says otherwise, the first turn with a server that was built anew has a minute,
half of it for each debugger.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("", "cli", "debuggers"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, folder))
import cases  # pylint: disable=wrong-import-position
import lldb_stock  # pylint: disable=wrong-import-position
import rsp  # pylint: disable=wrong-import-position
import turns  # pylint: disable=wrong-import-position

PROGRAM = os.path.join(cases.BINARY_DIR, "tests", "programs", "comes_and_goes")
# What an allocator may hold back, now more, now less.
MEMORY_MAY_GROW_KIB = 16 << 10
DESCRIPTORS_MAY_GROW = 4
FIRST_S, LATER_S = 60, 6
GOES_BACK = 22  # the first LLDB that can


def grown(values):
    """How much more the second half has at most than the first."""
    middle = len(values) // 2
    return max(values[middle:]) - max(values[:middle])


def with_gdb(engine, port):
    """The debugger's command, and what it reads."""
    return ["gdb", "-nx", "-batch", "-ex", f"target remote 127.0.0.1:{port}", "-x",
            os.path.join(HERE, "in_gdb.py"), PROGRAM], ""


def with_lldb(engine, port):
    commands = ["breakpoint set --name visit", "command script import in_lldb",
                "script in_lldb.soak(lldb.debugger)", "process kill"]
    return lldb_stock.command(), lldb_stock.script(
        lldb_stock.connecting(engine, PROGRAM, port), commands)


def why_no_gdb():
    return "" if shutil.which("gdb") else "there is no gdb"


def why_no_lldb():
    old = not lldb_stock.why_not() and lldb_stock.version() < GOES_BACK
    return f"it needs LLDB {GOES_BACK}" if old else lldb_stock.why_not()


DEBUGGERS = {"gdb": (with_gdb, why_no_gdb), "lldb": (with_lldb, why_no_lldb)}


def seen(debugger, engine, seconds):
    """What the debugger saw; a text: why it saw nothing."""
    with tempfile.TemporaryDirectory() as place:
        server = rsp.Server("--once", f"--engine={engine}", "127.0.0.1:0", PROGRAM)
        try:
            if server.port is None:
                return f"the server does not listen: {server.said}"
            result = os.path.join(place, "result")
            env = dict(os.environ, SOAK_SECONDS=str(seconds), SOAK_SERVER=str(server.process.pid),
                       SOAK_RESULT=result, PYTHONPATH=HERE, PYTHONDONTWRITEBYTECODE="1")
            command, words = DEBUGGERS[debugger][0](engine, server.port)
            ended = subprocess.run(command, env=env, input=words, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   check=False, timeout=seconds + 10 * cases.HANG_S)
            if not os.path.exists(result):
                return f"{debugger} ended with {ended.returncode}:\n{ended.stdout}"
            status = server.wait()
            with open(result, encoding="utf-8") as file:
                seen_inside = json.load(file)
            if seen_inside["wrong"]:
                seen_inside["wrong"] += f"; the server ended with {status}: {server.said}"
            return seen_inside
        finally:
            server.close()


def soak(debugger, engine, seconds):
    """What is wrong; empty: nothing."""
    result = seen(debugger, engine, seconds)
    if isinstance(result, str) or result["wrong"]:
        return result if isinstance(result, str) else result["wrong"]
    memory, descriptors = zip(*result["usage"])
    print(f"{debugger}, {engine}: {len(memory)} stops, {result['threads']} threads, "
          f"{memory[-1]} KiB, {descriptors[-1]} descriptors", flush=True)
    if result["threads"] < 2:
        return "no thread came"
    if grown(memory) > MEMORY_MAY_GROW_KIB:
        return f"memory grows: {memory} KiB"
    if grown(descriptors) > DESCRIPTORS_MAY_GROW:
        return f"descriptors grow: {descriptors}"
    return ""


def usable(names):
    """Those of the named debuggers, or of all, that are here."""
    here = []
    for name in names or DEBUGGERS:
        if missing := DEBUGGERS[name][1]():
            print(f"skip: {name}: {missing}")
        else:
            here.append(name)
    return here


def main():
    words = sys.argv[1:]
    seconds = [float(word.split("=")[1]) for word in words if word.startswith("--seconds=")]
    debuggers = usable([word for word in words if word in DEBUGGERS])
    works = {one["name"] for one in cases.doctor()["engines"] if one["works"]}
    named = [word for word in words if word not in DEBUGGERS and not word.startswith("--")]
    engines = [engine for engine in named or ["step"] if engine in works]
    if not debuggers or not engines:
        sys.exit(77)
    turn = turns.Turns(cases.TAILTRACE, "soak")
    time_s = seconds[0] if seconds else LATER_S if turn.had() else FIRST_S
    failed = False
    for engine in engines:
        for debugger in debuggers:
            if wrong := soak(debugger, engine, time_s / len(debuggers)):
                failed = True
                print(f"FAILED: {debugger}, {engine}: {wrong}")
    if failed:
        sys.exit(1)
    if not seconds:
        turn.count()


if __name__ == "__main__":
    main()
