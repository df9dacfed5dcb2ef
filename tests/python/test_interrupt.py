"""Long calls let other threads run and answer Ctrl-C."""

import _thread
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
