"""A program whose threads come and go is recorded, stopped, queried and stepped back, again and
again, by stock GDB over `tailtrace serve`.

    soak_test.py [--seconds=N] [ENGINE...]      an hour: --seconds=3600

At every stop the history is what was stepped before, as GDB saw it step by step, and the server's
memory and descriptors are no more in the second half of the time than in the first.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "cli"))
import cases  # pylint: disable=wrong-import-position
import rsp  # pylint: disable=wrong-import-position

PROGRAM = os.path.join(cases.BINARY_DIR, "tests", "programs", "comes_and_goes")
# What an allocator may hold back, now more, now less.
MEMORY_MAY_GROW_KIB = 16 << 10
DESCRIPTORS_MAY_GROW = 4


def grown(values):
    """How much more the second half has at most than the first."""
    middle = len(values) // 2
    return max(values[middle:]) - max(values[:middle])


def soak(engine, seconds):
    """What is wrong; empty: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        server = rsp.Server("--once", f"--engine={engine}", "127.0.0.1:0", PROGRAM)
        try:
            if server.port is None:
                return f"the server does not listen: {server.said}"
            env = dict(os.environ, SOAK_SECONDS=str(seconds), SOAK_SERVER=str(server.process.pid),
                       SOAK_RESULT=os.path.join(folder, "result"))
            gdb = subprocess.run(
                ["gdb", "-nx", "-batch", "-ex", f"target remote 127.0.0.1:{server.port}", "-x",
                 os.path.join(HERE, "in_gdb.py"), PROGRAM], env=env, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", check=False,
                timeout=seconds + 10 * cases.HANG_S)
            if not os.path.exists(env["SOAK_RESULT"]):
                return f"GDB ended with {gdb.returncode}:\n{gdb.stdout}{gdb.stderr}"
            with open(env["SOAK_RESULT"], encoding="utf-8") as file:
                result = json.load(file)
            server.wait()
        finally:
            server.close()
    if result["wrong"]:
        return result["wrong"]
    memory, descriptors = zip(*result["usage"])
    print(f"{engine}: {len(memory)} stops, {result['threads']} threads, {memory[-1]} KiB, "
          f"{descriptors[-1]} descriptors", flush=True)
    if result["threads"] < 2:
        return "no thread came"
    if grown(memory) > MEMORY_MAY_GROW_KIB:
        return f"memory grows: {memory} KiB"
    if grown(descriptors) > DESCRIPTORS_MAY_GROW:
        return f"descriptors grow: {descriptors}"
    return ""


def main():
    seconds, engines = 15.0, []
    for word in sys.argv[1:]:
        if word.startswith("--seconds="):
            seconds = float(word.split("=")[1])
        else:
            engines.append(word)
    if not shutil.which("gdb"):
        print("skip: there is no gdb")
        sys.exit(77)
    works = {one["name"] for one in cases.doctor()["engines"] if one["works"]}
    engines = [engine for engine in engines or ["step"] if engine in works]
    failed = False
    for engine in engines:
        if wrong := soak(engine, seconds):
            failed = True
            print(f"FAILED: {engine}: {wrong}")
    sys.exit(77 if not engines else 1 if failed else 0)


if __name__ == "__main__":
    main()
