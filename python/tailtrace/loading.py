"""Why the compiled part of the package cannot be imported."""

import importlib.machinery
import pathlib
import sys


def refused(error: ImportError) -> ImportError:
    """What to raise in the place of an error: Python's own does not say that the compiled part is
    there, but another Python's.
    """
    there = [path.name for path in pathlib.Path(__file__).parent.glob("_core.*.so")]
    mine = ["_core" + ending for ending in importlib.machinery.EXTENSION_SUFFIXES]
    if not there or set(mine) & set(there):
        return error
    version = ".".join(map(str, sys.version_info[:2]))
    return ImportError(f"its compiled part, {there[0]}, is not for this Python, {version}")
