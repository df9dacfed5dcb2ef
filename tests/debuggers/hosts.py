"""How debuggers are started that load what is ours: the Python package, LLDB's plugin.

Where these are built for a sanitizer, a debugger is not: the sanitizer's libraries must be in it
before all others ($TAILTRACE_TEST_PRELOAD names them), and in nothing that it starts, least of all
in a program that is traced.
"""

import os

PRELOAD = os.environ.get("TAILTRACE_TEST_PRELOAD")
# What a debugger keeps until its end is no leak of ours.
VARIABLES = {"LD_PRELOAD": PRELOAD, "ASAN_OPTIONS": "detect_leaks=0"} if PRELOAD else {}
FORGET = f"import os; [os.environ.pop(name) for name in {list(VARIABLES)}]"

# What stands before the command that starts a debugger, and what it is told first.
BEFORE = ["env", *(f"{name}={value}" for name, value in VARIABLES.items())] if PRELOAD else []
LLDB_FIRST = [f"script {FORGET}"] if PRELOAD else []
GDB_FIRST = [  # made a copy of them for programs that it runs itself
    f"python {FORGET}", *(f"unset environment {name}" for name in VARIABLES)] if PRELOAD else []


def gdb():
    """The first words of a command that starts it."""
    return [*BEFORE, "gdb", *(word for command in GDB_FIRST for word in ("-iex", command))]


def lldb(path):
    """As gdb()."""
    return [*BEFORE, path, *(word for command in LLDB_FIRST for word in ("-O", command))]
