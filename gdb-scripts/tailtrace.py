# GDB commands for what a program did last: `source tailtrace.py`, then `help tailtrace`.
#
# SPDX-License-Identifier: MIT
#
# The commands are in the folder tailtrace_gdb, beside this file or where Python looks for modules.
#
# A GDB that was built without Python takes this file for a list of its own commands, of which the
# next line is one: it says that there is no Python.
python = "the language of this file"

import importlib
import importlib.util
import pathlib
import sys

import gdb


def load():
    """The package beside this file, whatever else Python's path has."""
    # Not __file__: where another script sources this one, that is the other's.
    own = pathlib.Path(load.__code__.co_filename).resolve()
    place = own.parent / "tailtrace_gdb" / "__init__.py"
    if not place.exists():
        return importlib.import_module("tailtrace_gdb")
    before = sys.modules.get("tailtrace_gdb")
    if hasattr(before, "uninstall"):
        before.uninstall()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tailtrace_gdb"]:
        del sys.modules[name]  # sourced again: what is there now counts
    spec = importlib.util.spec_from_file_location("tailtrace_gdb", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tailtrace_gdb"] = module
    spec.loader.exec_module(module)
    return module


if int(gdb.VERSION.partition(".")[0]) < 12:
    # An exception of a script that is sourced would come with a traceback.
    gdb.write(f"cannot load the tailtrace commands\n  why:  this is GDB {gdb.VERSION}\n"
              "  fix:  use GDB 12 or later\n", gdb.STDERR)
else:
    load().install()
