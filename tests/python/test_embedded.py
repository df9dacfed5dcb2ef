"""The same package inside the debuggers' own Python."""

import os
import pathlib
import shutil
import subprocess

import hosts
import pytest
import rings

BUILD = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"])
SCRIPT = """
import tailtrace
h = tailtrace.open({path!r}, code=[(0x1000, bytes.fromhex({code!r}))]).threads[0]
with open({found!r}, "w") as file:
    print(len(h), h.at(-1).text, len(h.records), [hex(i.address) for i in h[:2]], file=file)
"""


def found_by(tmp_path, *command):
    """What the script found out inside a debugger; it is told in a file, not on the terminal."""
    path = rings.write_example(tmp_path / "a.ring")
    script, found = tmp_path / "script.py", tmp_path / "found"
    script.write_text(SCRIPT.format(path=path, code=rings.CODE.hex(), found=str(found)))
    words = [word.format(script=script) for word in command]
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    said = subprocess.run(words, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    assert found.exists(), said
    return found.read_text()


TRUTH = "6 ret 4 ['0x1000', '0x1001']\n"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="GDB is not installed")
def test_in_gdb(tmp_path):
    assert found_by(tmp_path, *hosts.gdb(), "-nx", "-batch", "-ex", "source {script}") == TRUTH


@pytest.mark.skipif(shutil.which("lldb-22") is None, reason="LLDB is not installed")
def test_in_lldb(tmp_path):
    load = "command script import {script}"
    assert found_by(tmp_path, *hosts.lldb("lldb-22"), "-x", "-b", "-o", load) == TRUTH
