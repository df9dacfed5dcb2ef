"""A history as a file for other programs."""

import json
import os

from .errors import user_error
from .ranges import Pager, Things
from .styles import plain
from .words import Words


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


def folded_stacks(history, first, last):
    yield from history.exported("folded", first, last)


def lcov(history, first, last):
    lines = iter(history.exported("lcov", first, last))
    begin = next(lines, None)
    if begin is None:
        raise user_error("cannot export as `lcov`", "nothing that was executed has source lines")
    yield begin
    yield from lines


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
