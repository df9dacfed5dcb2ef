"""A history as a file for other programs."""

import collections
import json
import os

from .errors import user_error
from .ranges import Pager, Things
from .styles import plain
from .words import Words, line_of


MOST_FOLDED = 500  # functions of a stack; deeper calls count for the one there


def numbered(history, item):
    return {"number": item["position"] + history.size + 1, **item}


def json_items(history, first, last):
    for item in history.fetch("items", first, last):
        yield json.dumps(numbered(history, item))


def text_items(history, first, last):
    words = Words(history)
    for item in history.fetch("items", first, last):
        if "gap" in item:
            yield f"{history.number(item['position'])}\t   [{item['gap']}: {item['text']}]"
        else:
            yield words.line(item, set()).rstrip("\n")


def all_calls(history):
    return history.fetch("calls", -history.number_of_calls(), -1)


def has_any(call, first, last):
    """Whether it has any of the items."""
    return call["last"] >= first and call["first"] <= last


def json_calls(history, first, last):
    items, calls = history.size + 1, history.number_of_calls() + 1
    for call in all_calls(history):
        if not has_any(call, first, last):
            continue
        call = {"number": call["position"] + calls, **call}
        for name, before in (("first", items), ("last", items), ("caller", calls),
                             ("earlier", calls), ("later", calls)):
            if name in call:
                call[name] += before
        yield json.dumps(call)


def stack_of(calls, position, known):
    """The functions of a call and its callers, outermost first. `known` ones are taken from there,
    and added to."""
    inner = []
    while position in calls and position not in known and len(inner) < len(calls):
        inner.append(position)
        position = calls[position].get("caller")
    stack = known.get(position, ())
    for position in reversed(inner):
        if len(stack) < MOST_FOLDED:
            stack += (calls[position].get("function", "??").replace(";", ":"),)
        known[position] = stack
    return stack


def folded_stacks(history, first, last):
    """"main;twice;inc 14": how many instructions were executed with which stack."""
    calls = {call["position"]: call for call in all_calls(history)}
    known, times = {}, collections.Counter()
    for call in calls.values():
        if "gap" not in call and has_any(call, first, last):
            inside = min(call["last"], last) - max(call["first"], first) + 1
            times[stack_of(calls, call["position"], known)] += inside
    for stack, count in times.items():
        yield f"{';'.join(stack)} {count}"


CALLS = ("call", "indirect-call")


def lcov(history, first, last):
    """Lines are counted where they are come to, but for the way back from a call in them."""
    times = collections.defaultdict(collections.Counter)
    lines, before, calls = {}, None, []
    for item in history.fetch("items", first, last):
        if "gap" in item:
            before = None
            continue
        address = item["address"]
        if address not in lines:
            lines[address] = line_of(item)
        place = lines[address]
        if place is not None and place != before:
            times[place[0]][place[1]] += 1
        before = place
        if item.get("branch") in CALLS:
            calls.append(place)
            before = None  # what is called may be in the same line
        elif item.get("branch") == "return" and calls:
            before = calls.pop()
    if not times:
        raise user_error("cannot export as `lcov`", "nothing that was executed has source lines")
    yield "TN:tailtrace"
    for file in sorted(times):
        yield f"SF:{file}"
        yield from (f"DA:{line},{count}" for line, count in sorted(times[file].items()))
        yield from (f"LF:{len(times[file])}", f"LH:{len(times[file])}", "end_of_record")


FORMATS = {"json": json_items, "calls": json_calls, "text": text_items, "folded": folded_stacks,
           "lcov": lcov}


def write(history, name, path, text):
    """Writes a new file that only its user can read; returns how many lines it has."""
    if name not in FORMATS:
        raise user_error(f"cannot export as `{name}`", "known are " + ", ".join(FORMATS))
    first, last = Pager().pick(text or f"1,{max(1, history.size)}", Things(history, "items"), 0)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise user_error(f"cannot write {path}", os.strerror(error.errno),
                         "choose another name") from None
    count = 0
    try:
        with os.fdopen(descriptor, "w") as file, plain():
            for line in FORMATS[name](history, first, last):
                file.write(line + "\n")
                count += 1
    except BaseException as error:
        os.unlink(path)  # half of it would be taken for all
        if isinstance(error, OSError):
            raise user_error(f"cannot write {path}", os.strerror(error.errno)) from None
        raise
    return count
