import os
import pathlib
import sys

import pytest
import rings
import tailtrace


# The sanitizer's library is loaded by now. Programs that are recorded must not load it, and Python
# programs that use the package must: see children.py.
os.environ["TAILTRACE_TEST_PRELOAD"] = os.environ.pop("LD_PRELOAD", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debuggers"))  # hosts.py


@pytest.fixture
def example_path(tmp_path):
    return rings.write_example(tmp_path / "example.ring")


@pytest.fixture
def example(example_path):
    return tailtrace.open(example_path, code=[(rings.CODE_AT, rings.CODE)]).threads[0]


@pytest.fixture
def open_loop(tmp_path):
    """Opens a ring of a loop of so many rounds."""
    def opened(rounds, capacity):
        path = rings.write_ring(tmp_path / f"loop{rounds}.ring", rings.loop_records(rounds),
                                capacity=capacity, stands_at=rings.LOOP_AT)
        return tailtrace.open(path, code=[(rings.LOOP_AT, rings.LOOP_CODE)]).threads[0]
    return opened


@pytest.fixture(scope="session")
def program_path():
    return os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs/three_rounds")


@pytest.fixture(scope="session")
def recorded(program_path):
    """The trace of the program tests/programs/three_rounds.c under qemu."""
    return tailtrace.record([program_path], engine="qemu")
