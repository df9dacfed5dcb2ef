"""What GDB does in the soak test: record, step, go back, ask, and let threads come and go. GDB
reads this file; the settings come in the environment."""

import json
import os
import time

import gdb

SECONDS = float(os.environ["SOAK_SECONDS"])
SERVER = int(os.environ["SOAK_SERVER"])
RESULT = os.environ["SOAK_RESULT"]
STEPS = 25


def pc():
    return int(gdb.selected_frame().pc())


def used():
    """The server's memory in KiB, and its descriptors."""
    with open(f"/proc/{SERVER}/status", encoding="ascii") as file:
        rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return rss, len(os.listdir(f"/proc/{SERVER}/fd"))


def visit():
    """One thread that comes: recorded, stepped, and gone back over. What is wrong, or nothing."""
    gdb.execute("continue", to_string=True)
    gdb.execute("record btrace bts", to_string=True)
    executed = []
    for _ in range(STEPS):
        executed.append(pc())
        gdb.execute("stepi", to_string=True)
    stop = pc()
    back = []
    for _ in range(STEPS):
        gdb.execute("reverse-stepi", to_string=True)
        back.append(pc())
    if back != executed[::-1]:
        return f"stepped {list(map(hex, executed))}, and back {list(map(hex, back))}"
    gdb.execute("record goto end", to_string=True)
    if pc() != stop:
        return f"stopped at {stop:#x}, and its end is {pc():#x}"
    asked = gdb.execute("record function-call-history", to_string=True)
    if "visit" not in asked:
        return "the calls do not name the function: " + asked
    gdb.execute("record stop", to_string=True)
    return ""


def soak():
    gdb.execute("set pagination off")
    gdb.execute("set confirm off")
    gdb.execute("set scheduler-locking step")  # others come and go between the stops only
    gdb.execute("break visit", to_string=True)
    begin, usage, threads, wrong = time.monotonic(), [], set(), ""
    while not wrong and (time.monotonic() < begin + SECONDS or len(usage) < 8):
        wrong = visit()
        usage.append(used())
        threads.add(gdb.selected_thread().ptid[1])
    return {"wrong": wrong, "usage": usage, "threads": len(threads)}


try:
    result = soak()
except Exception as error:  # pylint: disable=broad-except
    result = {"wrong": repr(error), "usage": [], "threads": 0}
with open(RESULT, "w", encoding="utf-8") as file:
    json.dump(result, file)
gdb.execute("kill")
