"""Histories out of a bundle that was loaded."""

import os

import gdb

from .errors import user_error
from .package import PackageHistory, attempt

trace = None  # what `tailtrace load` has read last


def mapped_files(thread):
    lines = thread._core.maps.split("\n")
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
        caches[key] = PackageHistory(threads[0], trace.path)
    return caches[key]
