"""Histories out of a bundle, read by the Python package `tailtrace`."""

import json
import os

import gdb

from .errors import user_error
from .history import History

trace = None  # what `tailtrace load` has read last


def package():
    """The Python package; it is needed for what is not asked of a server."""
    try:
        import tailtrace
        return tailtrace
    except ImportError as error:
        raise user_error("cannot use the Python package `tailtrace`", str(error),
                         "install it for the Python that GDB has in it: pip install ./python",
                         "everything behind `tailtrace serve`") from None


def attempt(what):
    """The value of `what()`, its failures in GDB's way."""
    module = package()
    try:
        return what(module)
    except module.Error as error:
        raise user_error(error.what, error.why, error.fix, error.now) from None


class SavedHistory(History):
    """A thread of a bundle."""

    def __init__(self, thread):
        super().__init__(f"{trace.path} {thread.pid}.{thread.tid}")
        self.source = thread
        self._calls = None

    def head(self):
        h = self.source
        facts = attempt(lambda _: {"size": len(h), "gaps": h.gaps, "complete": h.complete,
                                   "engine": h.engine})
        if h.stop is not None:
            facts["stop"] = f"{h.stop:#x}"
        return facts

    def calls(self):
        if self._calls is None:
            self._calls = attempt(lambda _: self.source.calls())
        return self._calls

    def calls_head(self):
        return {**self.facts(), "calls": len(self.calls())}

    def loops(self, first, last):
        found = attempt(lambda _: self.source[first - 1:last].loops())
        return [{**loop._asdict(), "head": f"{loop.head:#x}", "back": f"{loop.back:#x}"}
                for loop in found]

    def counts(self, begin, end):
        found = attempt(lambda _: self.source[:].counts(begin, end))
        return [{"address": f"{count.address:#x}", "times": count.times,
                 **({} if count.taken is None else {"taken": count.taken})} for count in found]

    def some(self, what, first, count):
        things = self.source if what == "items" else self.calls()
        last = min(first + count - 1, len(things))
        if first > last:
            return []
        text = attempt(lambda _: things._core.json_lines(first, last))
        return [json.loads(line) for line in text.splitlines()]

    def call_holding(self, number):
        call = attempt(lambda _: self.calls().holding(number))
        return None if call is None else self.call(call.number)

    def find(self, limit, addresses):
        found = []
        for address in addresses:
            found += attempt(lambda _: self.source[::-1].find(address=address, limit=limit))
        numbers = sorted((item.number for item in found), reverse=True)[:limit]
        return [self.item(number) for number in numbers]


def mapped_files(thread):
    lines = thread._core.maps.splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}


def refuse_another_program(path, opened):
    """The bundle must be of the program that GDB has, as far as both say what it is."""
    program = gdb.current_progspace().filename
    if program is None:
        return
    files = set().union(*[attempt(lambda _, t=t: mapped_files(t)) for t in opened.threads])
    names = {os.path.basename(file) for file in files if file.startswith("/")}
    if names and os.path.basename(program) not in names:
        raise user_error(f"cannot load {path}", f"it is not of {program}",
                         "load the program that was recorded with `file`, or start GDB anew")


def load(path):
    """Histories come from there from now on."""
    global trace
    opened = attempt(lambda module: module.open(path))
    refuse_another_program(path, opened)
    trace = opened
    caches.clear()


def unload():
    global trace
    trace = None
    caches.clear()


caches = {}


def of_selected_thread():
    """The history of the thread that GDB shows; of the only one, whichever that is."""
    wanted = None
    selected = gdb.selected_thread()
    if selected is not None:
        pid, lwp, tid = selected.ptid
        wanted = [t for t in trace.threads if t.tid == (lwp or tid)]
    threads = wanted or (trace.threads if len(trace.threads) == 1 or selected is None else [])
    if not threads:
        raise user_error("cannot show a history", f"{trace.path} has none of the selected thread",
                         "select one of " + ", ".join(str(t.tid) for t in trace.threads))
    key = threads[0].tid
    if key not in caches:
        caches[key] = SavedHistory(threads[0])
    return caches[key]
