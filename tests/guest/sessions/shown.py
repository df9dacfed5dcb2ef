"""Holds what `tailtrace history` shows of a recording against what the kernel saw executed.

shown.py TAILTRACE FOLDER FILE...: FOLDER/*/kept are recordings, each beside the log of what was
executed. All threads of it, and no others, were traced, and have the program's name; the newest
items of each are the newest that it executed, without a gap (samples: up to the last one, with
gaps). What was to be recorded of it only, and what was watched, is in the folder's name; the FILEs
have the places named there.
Files listed.TID beside a recording are what gdb listed of a thread's first and last instructions.
"""

import json
import pathlib
import re
import struct
import subprocess
import sys

TAILTRACE, RECORDED, *FILES = sys.argv[1:]


def executed_by_thread(log):
    """Addresses in order, of each thread id."""
    truth = {}
    for (entry,) in struct.iter_unpack("<Q", log):
        executed = truth.setdefault(entry >> 48, [])
        address = entry & (1 << 48) - 1
        if address >> 47:  # the kernel's: the last bit goes on
            address |= 0xffff << 48
        if not executed or executed[-1] != address:  # a REP is one instruction
            executed.append(address)
    return truth


def tailtrace(*words):
    outcome = subprocess.run([TAILTRACE, *words], check=True, capture_output=True, text=True)
    return outcome.stdout


def stretches(items):
    found = [[]]
    for item in items:
        if "gap" in item:
            found.append([])
        else:
            found[-1].append(int(item["address"], 16))
    return [stretch for stretch in found if stretch]


def follows(stretch, executed, begin):
    """Where a stretch lies in what was executed, from `begin` on; -1: nowhere."""
    for at in range(begin, len(executed) - len(stretch) + 1):
        if executed[at] == stretch[0] and executed[at:at + len(stretch)] == stretch:
            return at
    return -1


def lines_of(*words):
    """What a question has found, without the line that says of whom."""
    lines = map(json.loads, tailtrace(*words, "--json=lines").splitlines())
    return [line for line in lines if "address" in line and "gap" not in line]


def named_by(way, option):
    """The function that is the option's place, of whatever file."""
    return re.search(option + r"=(?:\S+`)?(\w+)", way)[1]


def is_at(address, function):
    """Programs lie somewhere else each time, at a multiple of a page."""
    return address % 4096 == SYMBOLS[function] % 4096


def asked_for(way, folder, thread, executed):
    """The part of what a thread executed that was to be recorded."""
    if "--filter" not in way and "--resume-at" not in way:
        return executed
    oldest = lines_of("history", f"--thread={thread['tid']}", folder, "1,1")[0]
    begin = int(oldest["address"], 16)
    if "--filter" in way:
        only = named_by(way, "--filter")
        assert is_at(begin, only), (way, hex(begin))
        return [address for address in executed if begin <= address < begin + SIZES[only]]
    first, last = named_by(way, "--resume-at"), named_by(way, "--pause-at")
    assert is_at(begin, first), (way, hex(begin))
    end = begin + SYMBOLS[last] - SYMBOLS[first]
    between = executed[executed.index(begin):executed.index(end)]
    assert thread["instructions"] == len(between), (way, thread["instructions"], len(between))
    return between


def check_watched(way, folder, tid, executed):
    listed = lines_of("find", "--kind=marker", f"--thread={tid}", folder)
    hits = [int(hit["address"], 16) for hit in listed]
    assert len(hits) == 2 and is_at(hits[0], "work_begin") and is_at(hits[1], "work_end"), way
    assert all(executed.count(hit) == 1 for hit in hits), way


def compare(way, folder, truth):
    threads = json.loads(tailtrace("info", "--json", folder))["threads"]
    assert threads and len(threads) == len(truth), (way, len(threads), len(truth))
    for thread in threads:
        assert thread["name"] == way.split()[0][:LONGEST_NAME], thread
        listed = tailtrace("history", "--json=lines", f"--thread={thread['tid']}", folder,
                           "-300,-1")
        items = [json.loads(line) for line in listed.splitlines()]
        shown = stretches(item for item in items if "address" in item or "gap" in item)
        executed = asked_for(way, folder, thread, truth[thread["tid"]])
        if "--filter" in way:  # off while it is elsewhere
            shown = [sum(shown, [])]
        if "--watch" in way:
            check_watched(way, folder, thread["tid"], executed)
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


LONGEST_NAME = 15  # that the kernel keeps of a thread
LISTED = 20  # of either end


def compare_listed(path, executed):
    shown = re.findall(r"^\d+\t.*?(0x\w+)", path.read_text(), re.M)
    addresses = [int(address, 16) for address in shown]
    assert len(addresses) == 2 * LISTED, (path.name, len(addresses))
    assert addresses[:LISTED] == executed[:LISTED], path.name
    assert addresses[LISTED:] in (executed[-LISTED:], executed[-LISTED - 1:-1]), path.name


named = subprocess.run(["nm", "-S", *FILES], check=True, capture_output=True, text=True).stdout
sized = re.findall(r"^(\w+) (\w+) \w (\w+)$", named, re.M)
SYMBOLS = {name: int(address, 16) for address, _, name in sized}
SIZES = {name: int(size, 16) for _, size, name in sized}
ways = sorted(pathlib.Path(RECORDED).iterdir())
assert ways, "nothing was recorded"
for one in ways:
    truth = executed_by_thread((one / "truth").read_bytes())
    compare(one.name, str(one / "kept"), truth)
    for listed in one.glob("listed.*"):
        compare_listed(listed, truth[int(listed.suffix[1:])])
