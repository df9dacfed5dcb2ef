"""Instructions as lines, with one line for a loop."""

from . import source
from .styles import styled
from .words import Words, source_line


class FoldedPages:
    """Pages of a history in which a loop is one line."""

    SEARCHED = 1 << 20  # items around a page

    def __init__(self, history):
        self.history = history

    def back(self, last, lines):
        at = last + 1
        for loop in reversed(self.history.loops(at - self.SEARCHED, last)):
            plain = at - 1 - loop["last"]
            if plain >= lines:
                break
            lines -= plain + 1
            at = loop["first"]
            if lines == 0:
                return at
        return at - lines

    def forward(self, first, lines):
        at = first
        end = min(-1, first + self.SEARCHED)
        for loop in self.history.loops(first, end):
            plain = loop["first"] - at
            if plain >= lines:
                break
            lines -= plain + 1
            at = loop["last"] + 1
            if lines == 0:
                return at - 1
        return at + lines - 1


def folded(history, first, last, fold):
    """The items of a range, with a loop in the place of those that are in one."""
    for loop in history.loops(first, last) if fold else ():
        yield from history.fetch("items", first, loop["first"] - 1)
        yield loop
        first = loop["last"] + 1
    yield from history.fetch("items", first, last)


def loop_line(history, loop):
    head, back = (source_line(int(loop[end], 16)) for end in ("head", "back"))
    where = loop["head"]
    if head is not None and back is not None and head[0].filename == back[0].filename:
        low, high = sorted((head[1], back[1]))
        where = f"{styled('filename', head[0].filename)}:{low}"
        where += f"-{high}" if low != high else ""
    first, last = (history.number(loop[end]) for end in ("first", "last"))
    return (f"{first}\t   [loop at {where}: {loop['rounds']} rounds, up to {last}"
            f"{exit_text(loop, head)}]\n")


def exit_text(loop, head):
    """Where a loop was left last; its file is not repeated."""
    if "exit" not in loop:
        return ""
    line = source_line(int(loop["exit"], 16))
    if line is None:
        return f", last exit at {loop['exit']}"
    same = head is not None and head[0].filename == line[0].filename
    return f", last exit at {'' if same else line[0].filename}:{line[1]}"


def gap_line(history, item):
    return f"{history.number(item['position'])}\t   [{item['gap']}: {item['text']}]\n"


def newest_lines(count):
    """The newest instructions as lines, loops folded."""
    history = source.current()
    words = Words(history)
    first = history.first_held(FoldedPages(history).back(-1, count))
    found = []
    for item in folded(history, first, -1, True):
        if "gap" in item:
            found.append(gap_line(history, item))
        elif "rounds" in item:
            found.append(loop_line(history, item))
        else:
            found.append(words.line(item, set()))
    return found
