"""Failures in the shape that all of tailtrace has: what, why, and the way out."""

import gdb


def user_error(what, why="", fix="", now=""):
    """For people to read: GDB shows it without a traceback."""
    parts = [("why: ", why), ("fix: ", fix), ("now: ", now)]
    return gdb.GdbError("\n".join([what] + [f"  {n} {text}" for n, text in parts if text]))
