"""GDB commands for what a program did last: `source tailtrace.py`, then `help tailtrace`.

The commands are in the folder tailtrace_gdb, beside this file or where Python looks for modules.
"""

import importlib
import importlib.util
import pathlib
import sys

import gdb


def load():
    """The package beside this file, whatever else Python's path has."""
    place = pathlib.Path(__file__).resolve().parent / "tailtrace_gdb" / "__init__.py"
    if not place.exists():
        return importlib.import_module("tailtrace_gdb")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tailtrace_gdb"]:
        del sys.modules[name]  # sourced again: what is there now counts
    spec = importlib.util.spec_from_file_location("tailtrace_gdb", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tailtrace_gdb"] = module
    spec.loader.exec_module(module)
    return module


if tuple(int(part) for part in gdb.VERSION.split(".")[:1] if part.isdigit()) < (12,):
    raise gdb.GdbError(f"cannot load the tailtrace commands\n  why:  this is GDB {gdb.VERSION}\n"
                       "  fix:  use GDB 12 or later")
load().install()
