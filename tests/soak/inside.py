"""What the soak test does inside of a debugger, whichever it is. The settings come in the
environment."""

import json
import os
import time

SECONDS = float(os.environ["SOAK_SECONDS"])
SERVER = int(os.environ["SOAK_SERVER"])
RESULT = os.environ["SOAK_RESULT"]
FEWEST_VISITS = 8


def used():
    """The server's memory in KiB, and its descriptors."""
    with open(f"/proc/{SERVER}/status", encoding="ascii") as file:
        rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return rss, len(os.listdir(f"/proc/{SERVER}/fd"))


def soak(visit):
    """Calls it until the time is over or something is wrong, and writes down what was seen. It
    tells what is wrong, or nothing, and which thread it visited."""
    begin, usage, threads, wrong = time.monotonic(), [], set(), ""
    try:
        while not wrong and (time.monotonic() < begin + SECONDS or len(usage) < FEWEST_VISITS):
            wrong, thread = visit()
            usage.append(used())
            threads.add(thread)
    except Exception as error:  # pylint: disable=broad-except
        wrong = repr(error)
    with open(RESULT, "w", encoding="utf-8") as file:
        json.dump({"wrong": wrong, "usage": usage, "threads": len(threads)}, file)
