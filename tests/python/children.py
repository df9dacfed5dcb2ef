"""Python programs that use the package, started by tests."""

import os
import subprocess
import sys

# What was needed to load the package is not handed on to what that program records.
START = """if True:
    import os, runpy, sys
    os.environ.pop("LD_PRELOAD", None)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_script(script, *words):
    """What a script says on its standard output; it must succeed."""
    environment = {**os.environ, "LD_PRELOAD": os.environ.get("TAILTRACE_TEST_PRELOAD", "")}
    return subprocess.run([sys.executable, "-c", START, os.fspath(script), *words], check=True,
                          env=environment, text=True, stdout=subprocess.PIPE).stdout
