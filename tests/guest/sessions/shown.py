"""Holds what `tailtrace history` shows of a recording against what the kernel saw executed.

shown.py TAILTRACE FOLDER: FOLDER/*/kept are recordings, each beside the log of what was executed.
All threads of it, and no others, were traced; the newest items of each are the newest that it
executed, without a gap (for last branch records: with gaps).
"""

import json
import pathlib
import struct
import subprocess
import sys

TAILTRACE, RECORDED = sys.argv[1:]


def executed_by_thread(log):
    """Addresses in order, of each thread id."""
    truth = {}
    for (entry,) in struct.iter_unpack("<Q", log):
        executed = truth.setdefault(entry >> 48, [])
        address = entry & (1 << 48) - 1
        if not executed or executed[-1] != address:  # a REP is one instruction
            executed.append(address)
    return truth


def tailtrace(*words):
    outcome = subprocess.run([TAILTRACE, *words], check=True, capture_output=True, text=True)
    return outcome.stdout


def stretches(items):
    found = [[]]
    for item in items:
        if "address" in item:
            found[-1].append(int(item["address"], 16))
        else:
            found.append([])
    return [stretch for stretch in found if stretch]


def follows(stretch, executed, begin):
    """Where a stretch lies in what was executed, from `begin` on; -1: nowhere."""
    for at in range(begin, len(executed) - len(stretch) + 1):
        if executed[at] == stretch[0] and executed[at:at + len(stretch)] == stretch:
            return at
    return -1


def compare(way, folder, truth):
    threads = json.loads(tailtrace("info", "--json", folder))["threads"]
    assert threads and len(threads) == len(truth), (way, len(threads), len(truth))
    for thread in threads:
        listed = tailtrace("history", "--json=lines", f"--thread={thread['tid']}", folder,
                           "-300,-1")
        items = [json.loads(line) for line in listed.splitlines()]
        shown = stretches(item for item in items if "address" in item or "gap" in item)
        executed = truth[thread["tid"]]
        if "lbr" in way:
            at = 0
            for stretch in shown:
                at = follows(stretch, executed, at)
                assert at >= 0, (way, thread["tid"])
            continue
        # A thread ends in the kernel: the last instruction is a system call that never returns.
        assert len(shown) == 1, (way, len(shown))
        assert len(shown[0]) >= min(290, len(executed) - 1), (way, len(shown[0]))
        assert shown[0] in (executed[-len(shown[0]):], executed[-len(shown[0]) - 1:-1]), way
    print(f"{way}: {len(threads)} threads, equal")


ways = sorted(pathlib.Path(RECORDED).iterdir())
assert ways, "nothing was recorded"
for one in ways:
    compare(one.name, str(one / "kept"), executed_by_thread((one / "truth").read_bytes()))
