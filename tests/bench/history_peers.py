#!/usr/bin/python3
"""The newest screen of a recorded program and the whole of it, beside what GDB, LLDB and libipt
take for the same.

    tests/bench/history_peers.py [BUILD_FOLDER]

LLDB records a program by our server and saves its trace: LLDB, libipt and we read those bytes. GDB
takes its trace from a server only, so it is handed as many instructions of the same program by
ours.
`history_bench` runs this at its end. One line a measurement; nothing here can fail on time.
"""

import re
import shutil
import subprocess
import tempfile
import time

import lldb_bench
import lldb_stock

INSTRUCTIONS = lldb_bench.MILLION

# Inside GDB: what it decodes at first when it is asked for its newest screen.
IN_GDB = """python
import time
before = time.monotonic()
gdb.execute("record instruction-history", to_string=True)
print("@@ %.3f" % (time.monotonic() - before))
"""


def beside_lldb(bundle):
    load = f"trace load {bundle}/trace.json"
    lldb_bench.compare("the newest 50 of LLDB's bundle",
                       [lldb_bench.TAILTRACE, "history", bundle, "-50,-1"],
                       [load, "thread trace dump instructions --count 50"])
    lldb_bench.compare("all of it counted",
                       [lldb_bench.TAILTRACE, "info", bundle], [load, "thread trace dump info"])


def beside_libipt(bundle):
    bench = lldb_bench.BUILD / "tests/pt_bench"
    if not bench.exists():
        print("libipt on these bytes: pt_bench is not built")
        return
    subprocess.run([bench, "--rounds=1", f"{bundle}/trace.json"], check=False)


def beside_gdb(bundle):
    count = INSTRUCTIONS
    serve = (f"{lldb_bench.TAILTRACE} serve --engine=qemu --ring=128MiB --handover={count} - "
             f"{lldb_bench.PROGRAM} {2 * count // lldb_bench.INSNS_A_ROUND}")
    words = ["set confirm off", "set pagination off", "set record instruction-history-size 50",
             "set remotetimeout 60", f"target remote | {serve}", "break main", "continue",
             "record btrace pt", "break exit", "continue"]
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write("\n".join(words) + "\n" + IN_GDB + "end\ninfo record\nkill\n")
        script.flush()
        said = subprocess.run([shutil.which("gdb"), "-nx", "-q", "-batch", "-x", script.name,
                               str(lldb_bench.PROGRAM)], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    seconds = re.search(r"^@@ ([0-9.]+)$", said, re.MULTILINE)
    held = re.search(r"Recorded (\d+) instructions", said)
    if not seconds or not held:
        print("GDB could not be measured:\n" + said[-500:])
        return
    before = time.monotonic()
    subprocess.run([lldb_bench.TAILTRACE, "history", bundle, "-50,-1"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = time.monotonic() - before
    print(f"GDB's newest 50 of {held[1]} instructions, {seconds[1]} s: "
          f"{float(seconds[1]) / ours:.0f} times as long as a process of ours takes")


def main():
    if lldb_stock.why_not():
        print(lldb_stock.why_not())
        return
    with tempfile.TemporaryDirectory() as folder:
        bundle, count = lldb_bench.recorded(folder, INSTRUCTIONS)
        print(f"{count} instructions of {lldb_bench.PROGRAM.name} in LLDB's bundle", flush=True)
        beside_lldb(bundle)
        beside_gdb(bundle)
        beside_libipt(bundle)


if __name__ == "__main__":
    main()
