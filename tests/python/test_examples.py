"""The scripts of python/examples: each runs, and says what is so."""

import collections
import importlib
import os
import pathlib
import re
import signal
import subprocess

import children
import pytest
import rings
import tailtrace

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "python" / "examples"
SOURCE = os.path.join(os.path.dirname(__file__), "..", "programs", "three_rounds.c")
TESTED = {"last_functions.py", "coverage_lcov.py", "hottest_loops.py", "who_freed_last.py",
          "good_and_bad.py", "watch_ring.py"}


def run(name, *words):
    return children.run_script(EXAMPLES / name, *words)


def line_of(text):
    with open(SOURCE) as file:
        return [number for number, line in enumerate(file, 1) if text in line][0]


def test_each_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == TESTED


@pytest.fixture
def last_functions(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("last_functions")


def test_last_functions(program_path):
    said = run("last_functions.py", "--ms", "100000", program_path).splitlines()
    assert said[0].endswith(": in the last 100000 ms:")
    rows = [line.split(maxsplit=1) for line in said[1:]]
    assert {"main", "twice", "inc", "clean_up"} < {name for _, name in rows}
    counts = [int(count) for count, _ in rows]
    assert counts == sorted(counts, reverse=True)


def test_last_functions_are_those_since_a_moment(recorded, last_functions):
    h = recorded.threads[0]
    items = list(h)
    # Since the newest time but one of those that there are.
    moment = sorted({item.time for item in items})[-2]
    ticks = items[-1].time - moment
    begin = last_functions.begin_of_last(h, ticks)
    assert h.at(begin).time == moment and h.at(begin - 1).time < moment
    truth = collections.Counter(item.function or "(no symbol)" for item in items
                                if item.time >= moment)
    found = last_functions.instructions_by_function(h.calls(begin))
    assert found == truth and 0 < sum(truth.values()) < len(items)


def test_last_functions_of_what_has_no_times(open_loop, last_functions, capsys):
    last_functions.show(open_loop(100, 128), 10, 1_000_000)
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(": no times are known; in the newest 1000 calls:")
    assert said[1].split() == ["200", "(no", "symbol)"]


def test_coverage(program_path):
    text = run("coverage_lcov.py", "1000000", program_path)
    mine = re.search(r"SF:[^\n]*three_rounds\.c\n(.*?)end_of_record", text, re.S)[1]
    lines = {int(line): int(times) for line, times in re.findall(r"DA:(\d+),(\d+)", mine)}
    assert lines[line_of("return x + 1;")] == 6
    assert lines[line_of("x = inc(x);")] == 3
    assert lines[line_of("total += twice(i);")] == 3
    assert lines[line_of("int total = 0;")] == 1
    executed = sum(times > 0 for times in lines.values())
    assert f"LF:{len(lines)}\nLH:{executed}\n" in mine
    assert text.startswith("TN:tailtrace\nSF:") and text.endswith("end_of_record\n")


def test_coverage_of_the_tail_leaves_out_what_came_before(program_path):
    text = run("coverage_lcov.py", "100", program_path)
    assert "three_rounds.c" not in text
    # What is in the tail is the C library's; its lines are known where its debug symbols are.
    assert text.startswith("TN:tailtrace\n")


def test_hottest_loops(program_path, monkeypatch):
    loops = run("hottest_loops.py", program_path).splitlines()[1:]
    rounds = [int(line.split()[0]) for line in loops]
    assert rounds == sorted(rounds, reverse=True) and rounds[0] > 2
    # The program's own loop goes back twice; the dynamic loader's are hotter.
    monkeypatch.syspath_prepend(EXAMPLES)
    hottest_loops = importlib.import_module("hottest_loops")
    h = tailtrace.record([program_path]).threads[0]
    own = [found for found in hottest_loops.hottest_loops(h, 1 << 20)
           if hottest_loops.place(h, found[1]).startswith("main ")]
    assert [found[0] for found in own] == [2]


def test_who_freed_last(program_path):
    said = run("who_freed_last.py", "--function", "inc", program_path).splitlines()
    assert [line.split()[0] for line in said[1:4]] == ["inc", "twice", "main"]
    said = run("who_freed_last.py", program_path).splitlines()
    assert "free" in said[1]
    assert [line.split()[0] for line in said[2:5]] == ["free@plt", "clean_up", "main"]
    assert f"three_rounds.c:{line_of('free(what);')}" in said[3]
    said = run("who_freed_last.py", "--function", "no_such_function", program_path)
    assert "no_such_function was not called" in said


def test_good_and_bad():
    program = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs/overrun")
    said = run("good_and_bad.py", "--module", "overrun", program, "Ada", "Augusta")
    assert "1 differences\n  path of copy\n" in said
    bad = re.search(r"bad parted behind  copy at (\S+): jn\w+ .*\n"
                    r".*bad went on with   copy at (\S+):", said)
    # The condition of the loop stands behind its body, in the same line; it goes on for one only.
    assert bad and bad[1] == bad[2]
    assert "0 differences" in run("good_and_bad.py", program, "Ada", "Eve")


@pytest.fixture
def watch_ring(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("watch_ring")


def test_watch_ring_of_a_ring_that_went_round(tmp_path, watch_ring):
    records = [rings.record(rings.JUMP, n, n + 1, insns=n % 7 + 1) for n in range(1000)]
    path = rings.write_ring(tmp_path / "ring", records, capacity=64)
    first, newest = watch_ring.Ring(path).newest(1 << 40)
    assert (first, len(newest)) == (1000 - 63, 63)
    assert [watch_ring.RECORD.pack(*one) for one in newest] == records[-63:]
    said = run("watch_ring.py", path, "2").splitlines()
    assert [line.split()[0] for line in said] == ["998", "999"]
    assert said[1].split()[1:4] == ["0x3e7", "->", "0x3e8"] and said[1].endswith("jump")


@pytest.mark.parametrize("at, data", [(0, b"X"), (8, b"\x02"), (24, b"\x41"), (16, b"\x10")])
def test_watch_ring_refuses_what_is_no_ring(tmp_path, watch_ring, at, data):
    path = rings.write_ring(tmp_path / "ring", [rings.record(rings.JUMP, 1, 2, insns=1)])
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
    with pytest.raises(ValueError):
        watch_ring.Ring(path)


def test_watch_ring_while_the_program_runs_on(tmp_path, watch_ring):
    binaries = pathlib.Path(os.environ["TAILTRACE_BINARY_DIR"])
    program = [binaries / "tests/programs/rounds", "-1"]
    command = [binaries / "plugin/tailtrace", "run", "--no-debugger", "--ring=32MiB",
               f"--keep={tmp_path}/kept", "--", *program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.read(1) == b"r"  # its rounds begin
        folder, = (tmp_path / "kept").iterdir()
        ring = watch_ring.Ring(folder / "thread.0.ring")
        begun = ring.head
        while ring.head < begun + 2 * ring.capacity:
            os.sched_yield()
        edges, positions = set(), []
        while len(positions) < 50:
            first, records = ring.newest(300)
            for one, following in zip(records, records[1:]):
                # A run leads straight from where one branch went to where the next one is.
                assert one[1] <= following[0] < one[1] + 15 * following[3]
            edges.update((source, to, insns) for source, to, _, insns, *_ in records)
            if records:
                positions.append(first)
        os.kill(int(folder.name.split(".")[0]), signal.SIGKILL)
    assert positions == sorted(positions)
    # The rounds are all the same, so that their branches are few; a torn record would be another.
    assert len(edges) < 40
    assert ring.newest(300)[1][-1][:2] in {edge[:2] for edge in edges}
