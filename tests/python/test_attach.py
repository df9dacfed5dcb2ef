"""Attaching to a process that runs: what is refused, and how it is held for a snapshot. Recording
itself needs tracing hardware, which the provider's own tests have or stand in for."""

import os
import signal
import subprocess
import threading

import pytest
import tailtrace
from tailtrace import _core


def states(pid):
    found = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as stat:
            found.add(stat.read().rpartition(")")[2].split()[0])
    return found


@pytest.fixture
def busy():
    """A process of two threads that do nothing but run."""
    code = ("import threading\ndef run():\n while True: pass\n"
            "threading.Thread(target=run, daemon=True).start()\nprint('ready', flush=True)\nrun()")
    process = subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE,
                               env={"PATH": os.environ["PATH"]})
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def test_all_threads_stand_meanwhile_and_go_on_after(busy):
    assert len(os.listdir(f"/proc/{busy}/task")) == 2
    assert _core.while_standing(busy, lambda: states(busy)) == {"T"}
    # SIGCONT has been sent: the state is already another.
    assert "T" not in states(busy)


def test_what_stood_before_is_left_standing(busy):
    os.kill(busy, signal.SIGSTOP)
    os.waitpid(busy, os.WUNTRACED)
    assert _core.while_standing(busy, lambda: states(busy)) == {"T"}
    assert states(busy) == {"T"}


def test_an_exception_lets_it_go_on(busy):
    def fail():
        raise KeyError("nothing")
    with pytest.raises(KeyError):
        _core.while_standing(busy, fail)
    assert "T" not in states(busy)


def test_without_hardware_it_says_what_there_is_instead(busy):
    try:
        attached = tailtrace.attach(busy)
    except tailtrace.Error as error:
        assert error.why and (error.fix or error.now)
        return
    with attached:
        trace = attached.snapshot()
    assert {thread.pid for thread in trace.threads} == {busy}
    assert sum(len(thread) for thread in trace.threads) > 0


@pytest.mark.parametrize("pid", [0, -1, 1 << 40, "1", None])
def test_what_is_no_process_is_refused(pid):
    with pytest.raises((tailtrace.UsageError, TypeError)):
        tailtrace.attach(pid)


def test_a_process_that_is_gone_is_said_to_be():
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    with pytest.raises(tailtrace.Error) as caught:
        tailtrace.attach(process.pid)
    assert str(process.pid) in str(caught.value)


def test_an_engine_that_cannot_attach_is_refused():
    with pytest.raises(tailtrace.UsageError) as caught:
        tailtrace.attach(os.getpid(), engine="qemu")
    assert caught.value.why


def test_it_may_be_asked_from_any_thread(busy):
    seen = []
    worker = threading.Thread(
        target=lambda: seen.append(_core.while_standing(busy, lambda: states(busy))))
    worker.start()
    worker.join()
    assert seen == [{"T"}]
