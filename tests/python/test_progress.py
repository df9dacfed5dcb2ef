"""Long calls say how far they are, to whoever is asked to listen, and end when it objects."""

import io
import sys

import pytest
import tailtrace
from tailtrace import progress


@pytest.fixture
def told():
    seen = []
    before = tailtrace.set_progress(lambda *what: seen.append(what))
    yield seen
    tailtrace.set_progress(before)


def test_it_is_told_until_all_is_done(open_loop, told):
    h = open_loop(1 << 22, 1 << 22)
    assert len(h) > 8_000_000
    del told[:]
    h[:].columns()
    assert told, "8 million items take longer than 50 ms"
    done = [done for what, done, total in told]
    assert {(what, total) for what, done, total in told} == {("columns", len(h))}
    assert done == sorted(done) and done[-1] == len(h)


def test_what_the_listener_raises_ends_the_call(open_loop):
    def refuse(what, done, total):
        raise ValueError("enough")
    h = open_loop(1 << 22, 1 << 22)
    len(h)
    before = tailtrace.set_progress(refuse)
    try:
        with pytest.raises(ValueError, match="enough"):
            h[:].find(kind="ptwrite")
    finally:
        tailtrace.set_progress(before)


@pytest.mark.parametrize("wrong", [5, "print", []])
def test_what_cannot_be_called_is_refused(told, wrong):
    with pytest.raises(TypeError, match="a listener is a function, or None, not"):
        tailtrace.set_progress(wrong)


def test_the_bar_is_for_terminals_and_notebooks(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    times = iter([0.0, 0.1, 0.5])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = progress.Bar()
    bar("search", 1, 100)
    assert sys.stderr.getvalue() == ""  # not for what is done soon
    bar("search", 40, 100)
    assert sys.stderr.getvalue() == "\rsearch: 40 % "
    bar("search", 100, 100)
    assert sys.stderr.getvalue().endswith("\r")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress.time, "monotonic", lambda: 9.0)
    bar("search", 1, 2)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)  # a notebook's, whose output is no terminal
    bar = progress.Bar()
    monkeypatch.setattr(progress.time, "monotonic", lambda: 10.0)
    bar("search", 0, 2)
    monkeypatch.setattr(progress.time, "monotonic", lambda: 11.0)
    bar("search", 1, 2)
    assert sys.stderr.getvalue() == "\rsearch: 50 % "
