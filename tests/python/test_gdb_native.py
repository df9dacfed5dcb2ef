"""`tailtrace start` on a program that GDB runs itself, with a stand-in for the recording: who is
recorded when. tests/guest/sessions/native has it with a kernel that can record."""

import pathlib
import shutil

import pytest
import rings
from test_gdb_scripts import BUILD, talk_without_program

PROGRAM = BUILD / "tests/programs/hand_over"

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="GDB is not installed")

# Notes for each thread whether it ran already when it began to be recorded: one that stands has a
# place in the kernel.
STAND_IN = """
import gdb, tailtrace

class Attached:
    engine = "made-up"

    def __init__(self, pid, *, engine):
        self.pid, self.threads = pid, []
        self.follow(pid)

    def follow(self, tid):
        try:
            with open(f"/proc/{{tid}}/syscall") as file:
                state = "runs" if file.read().startswith("running") else "stands"
        except OSError:
            raise tailtrace.GoneError("it has ended")
        gdb.write(f"recorded {{'first' if tid == self.pid else 'another'}} {{state}}\\n")
        self.threads.append(tid)

    def take_remarks(self):
        return []

    def snapshot_thread(self, tid):
        gdb.write("looked at\\n")
        return tailtrace.open({ring!r}, code=[(0x1000, bytes.fromhex({code!r}))]).threads[0]

    def stop(self):
        gdb.write("ended\\n")

tailtrace.attach = Attached
tailtrace._core.try_hardware = lambda name: None
"""


def session(tmp_path, *commands):
    stand_in = pathlib.Path(tmp_path) / "stand_in.py"
    ring = rings.write_example(pathlib.Path(tmp_path) / "a.ring")
    stand_in.write_text(STAND_IN.format(ring=ring, code=rings.CODE.hex()))
    return talk_without_program(f"source {stand_in}", *commands, program=[str(PROGRAM)])[1:]


def test_threads_are_recorded_before_they_run(tmp_path):
    start, _, run, first, again, _, after, info, stop, stepping = session(
        tmp_path, "tailtrace start", "break in_worker", "run", "tailtrace instruction-history",
        "tailtrace hits *0x1010", "finish", "tailtrace goto -1", "tailtrace info",
        "tailtrace stop", "show displaced-stepping")
    assert start == "Recording begins when the program does.\n"
    assert [line for line in run.splitlines() if line.startswith(("recorded", "Recording"))] == [
        "recorded first stands", "Recording with made-up.", "recorded another stands"]
    assert len([line for line in first.splitlines() if "0x00000000000010" in line]) == 6
    # Once a stop.
    assert first.count("looked at") == 1 and again.count("looked at") == 0
    assert after.count("looked at") == 1
    assert info.count("recorded by made-up") == 2
    assert stop == "ended\n"
    # What GDB is told not to do meanwhile, it may do again.
    assert "is auto" in stepping


def test_a_program_that_ends_ends_its_recording(tmp_path):
    _, runs, info, again = session(tmp_path, "tailtrace start", "run", "tailtrace info", "run")
    assert "ended" in runs.splitlines()
    assert "why:  nothing is recorded\n  fix:  tailtrace start" in info
    assert "recorded" not in again


def test_gdbs_own_full_recording_is_left_alone(tmp_path):
    said = session(tmp_path, "break main", "run", "tailtrace start", "record full", "next",
                   "tailtrace where", "tailtrace goto -1", "tailtrace goto end", "tailtrace stop",
                   "info record")
    assert "At the present, behind instruction 6.\n#0 " in said[5]
    assert "0x0000000000001011" in said[6]
    assert said[8] == "ended\n"
    assert said[9].startswith("Active record target: record-full")
