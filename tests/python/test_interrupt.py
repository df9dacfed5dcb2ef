"""Long calls let other threads run and answer Ctrl-C."""

import _thread
import contextlib
import os
import signal
import sys
import threading

import pytest
import tailtrace


def wait_until_inside(thread_id, code):
    """Returns when the thread is inside the one call that the function of this code makes."""
    while True:
        frame = sys._current_frames()[thread_id]
        # This thread runs, so that one has let go of the interpreter: in its call, or on its way.
        if frame.f_code is code and frame.f_lasti == call_offset(code):
            return


def call_offset(code):
    import dis
    return [i.offset for i in dis.get_instructions(code) if i.opname == "CALL"][-1]


def test_ctrl_c_ends_a_call_that_would_never_end(example):
    core, columns = example._core, tailtrace._core.item_columns
    len(example)

    def endless():
        columns(core, -1, 1 << 62, 0)  # the newest item, again and again

    main = _thread.get_ident()

    def press():
        wait_until_inside(main, endless.__code__)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        endless()
    presser.join()
    assert example.at(-1).text == "ret"


def blocked_signals(thread_id):
    with open(f"/proc/self/task/{thread_id}/status") as status:
        return int(next(line for line in status if line.startswith("SigBlk:")).split()[1], 16)


def test_threads_that_work_are_given_no_signals(open_loop):
    """A debugger that waits for a signal of its own would wait for ever."""
    history = open_loop(1 << 22, 1 << 22)
    main, masks = threading.get_native_id(), []

    def look(what, done, total):
        for task in os.listdir("/proc/self/task"):
            if int(task) != main:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended
                    masks.append(blocked_signals(task))

    before = tailtrace.set_progress(look)
    try:
        history[:].counts()  # takes far longer than it is silent
    finally:
        tailtrace.set_progress(before)
    wanted = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGALRM))
    assert masks and all(mask & wanted == wanted for mask in masks)
