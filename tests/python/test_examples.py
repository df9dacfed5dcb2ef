"""The scripts of python/examples: each runs, and says what is so."""

import importlib
import os
import pathlib
import re

import children
import tailtrace

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "python" / "examples"
SOURCE = os.path.join(os.path.dirname(__file__), "..", "programs", "three_rounds.c")
TESTED = {"last_functions.py", "coverage_lcov.py", "hottest_loops.py", "who_freed_last.py"}


def run(name, *words):
    return children.run_script(EXAMPLES / name, *words)


def line_of(text):
    with open(SOURCE) as file:
        return [number for number, line in enumerate(file, 1) if text in line][0]


def test_each_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == TESTED


def test_last_functions(program_path):
    names = [line.split(maxsplit=1)[1] for line in
             run("last_functions.py", program_path).splitlines()[1:]]
    assert 3 <= len(names) <= 20
    assert names[0] in ("_exit", "__GI__exit")
    assert len(set(names)) == len(names)


def test_coverage(program_path):
    text = run("coverage_lcov.py", "1000000", program_path)
    mine = re.search(r"SF:[^\n]*three_rounds\.c\n(.*?)end_of_record", text, re.S)[1]
    lines = {int(line): int(times) for line, times in re.findall(r"DA:(\d+),(\d+)", mine)}
    assert lines[line_of("return x + 1;")] == 6
    assert lines[line_of("x = inc(x);")] == 3
    assert lines[line_of("total += twice(i);")] == 3
    assert lines[line_of("int total = 0;")] == 1
    assert f"LF:{len(lines)}\nLH:{len(lines)}\n" in mine
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
