"""A program that was run and recorded: its names, calls and places, against what GDB says of it."""

import gc
import os
import re
import subprocess

import hosts
import pytest
import tailtrace
from tailtrace import _core

SOURCE = os.path.join(os.path.dirname(__file__), "..", "programs", "three_rounds.c")


def line_of(text):
    with open(SOURCE) as file:
        return [number for number, line in enumerate(file, 1) if text in line][0]


def gdb(program, *commands):
    words = [word for command in commands for word in ("-ex", command)]
    return subprocess.run([*hosts.gdb(), "-nx", "-batch", *words, program], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


@pytest.fixture
def h(recorded):
    return recorded.threads[0]


def test_was_recorded_whole(recorded, h):
    assert recorded.exit_status == 1 + 2 + 3 + 3 * 2 + 0
    assert len(recorded.threads) == 1
    assert (h.engine, h.live, h.complete, h.gaps) == ("qemu", False, True, 0)
    assert len(h.records) > 1000
    assert h.at(-1).kind == "system-call"


def test_hits_are_where_gdbs_breakpoints_stop(h, program_path):
    places = ["main", "inc", "twice", "clean_up"] + [
        f"three_rounds.c:{line_of(text)}" for text in
        ["x = inc(x);", "total += twice(i);", "free(what);", "int total = 0;"]]
    said = gdb(program_path, "set breakpoint pending on",
               *[f"break {place}" for place in places if ":" in place],
               *[f"break *{place}" for place in places if ":" not in place],
               *[f"ignore {i + 1} 1000" for i in range(len(places))], "run", "info breakpoints")
    hits = [int(n) for n in re.findall(r"breakpoint already hit (\d+) time", said)]
    ordered = [p for p in places if ":" in p] + [p for p in places if ":" not in p]
    assert len(hits) == len(places)
    assert [len(h.hits(place)) for place in ordered] == hits


def test_lines_are_gdbs(h, program_path):
    insns = h[:].find(symbol="twice")
    assert {insn.function for insn in insns} == {"twice"}
    entry = h.hits("twice")[0].address
    offsets = sorted({insn.address - entry for insn in insns})
    said = gdb(program_path, "break main", "run",
               *[f"info line *((char*)twice + {offset})" for offset in offsets])
    gdbs = [int(line) for line in re.findall(r"^Line (\d+) of", said, re.M)]
    lines = {insn.address - entry: insn.line for insn in insns}
    assert [lines[offset] for offset in offsets] == gdbs
    assert all(insn.file.endswith("three_rounds.c") for insn in insns)


def test_last_is_the_newest(h):
    last = h.last("inc")
    assert last == h.hits("inc")[-1]
    inside = h.last("inc", inside=True)
    assert inside == h.hits("inc", inside=True)[-1] == h[:].find(symbol="inc")[-1]
    assert inside.text == "ret"
    assert h.last("no_such_function") is None
    assert h.last("no_such_file.c:3") is None


def test_what_is_not_there_is_told_from_what_was_not_reached(h):
    assert h.missing("inc") is None and h.missing("clean_up") is None
    assert h.missing("three_rounds.c:1", inside=True) is not None
    missing = h.missing("tvice")
    assert isinstance(missing, tailtrace.NegativeError) and "twice" in missing.fix
    with pytest.raises(tailtrace.NegativeError) as caught:
        h.why("tvice")
    assert caught.value.args == missing.args


def test_calls_are_a_tree(h):
    calls = h.calls()
    assert sum(call.function == "inc" for call in calls) == 6
    main = [call for call in calls if call.function == "main"]
    for call in calls:
        if call.function == "twice":
            assert calls.number(call.caller).function == "main"
            assert call.level == main[0].level + 1
        if call.function == "inc":
            assert calls.number(call.caller).function == "twice"
            assert [c.function for c in calls.stack(call.first)][:3] == ["inc", "twice", "main"]
            assert calls.holding(call.last) == call
            assert {insn.function for insn in h[call.first - 1:call.last]} == {"inc"}
    assert calls[0].first == 1 and calls[-1].last == len(h)
    assert all(a.last + 1 == b.first for a, b in zip(calls, calls[1:]))
    assert "inc" in calls.listing()


def test_calls_of_a_stretch(h):
    inc = h.hits("inc")[0]
    calls = h.calls(inc.number - 1, inc.number + 1)
    assert [call.function for call in calls] == ["inc"]
    assert len(h.calls(0, 0)) == 0 and h.calls(0, 0).listing() == ""
    for index in [1, -2]:
        with pytest.raises(tailtrace.PositionError):
            calls[index]
    with pytest.raises(tailtrace.PositionError):
        calls.number(0)
    with pytest.raises(tailtrace.PositionError):
        h[::2].calls()


def test_finds_by_all_that_is_given(h):
    assert {insn.kind for insn in h[:].find(kind="return", symbol="inc")} == {"return"}
    assert len(h[:].find(kind="return", symbol="inc")) == 6
    one = h.hits("inc")[2]
    assert [insn.number for insn in h.find(address=one.address)][2] == one.number
    assert len(h.find(kind="call", limit=3)) == 3
    newest = h.find(kind="call")[-1]
    assert h[::-1].find(kind="call", limit=1) == [newest]


def test_a_session_is_opened_again(recorded, h):
    again = tailtrace.open(recorded.path).threads[0]
    assert len(again) == len(h)
    assert again.at(-5).text == h.at(-5).text and again.at(-5).function == h.at(-5).function
    assert (again.records == h.records).all()
    (process,) = os.listdir(recorded.path)
    same = tailtrace.open(os.path.join(recorded.path, process)).threads[0]
    assert len(same) == len(h)


def test_a_recording_goes_away_with_its_last_history(program_path):
    trace = tailtrace.record([program_path])
    path, h = trace.path, trace.threads[0]
    del trace
    gc.collect()
    assert h.last("inc", inside=True).text == "ret"
    records = h.records
    assert os.path.isdir(path)
    del h
    gc.collect()
    assert not os.path.exists(path)
    assert records["insns"].sum() > 1000


def test_a_small_ring_keeps_the_tail(program_path):
    whole = tailtrace.record([program_path]).threads[0]
    tail = tailtrace.record([program_path], ring_records=64).threads[0]
    assert not tail.complete and len(tail.records) == 63
    texts = [insn.text for insn in tail]
    assert [insn.text for insn in whole[-len(texts):]] == texts


@pytest.mark.parametrize("program, kind", [
    ("ls", tailtrace.UsageError), ([], tailtrace.UsageError),
    (["/no/such/program"], tailtrace.Error), (["/etc/passwd"], tailtrace.Error)])
def test_what_cannot_be_run(program, kind):
    with pytest.raises(kind) as caught:
        tailtrace.record(program)
    assert caught.value.why


def test_what_cannot_be_recorded(program_path):
    with pytest.raises(tailtrace.UsageError):
        tailtrace.record([program_path], ring_records=1000)
    with pytest.raises(tailtrace.UsageError) as caught:
        tailtrace.record([program_path], engine="magic")
    assert "magic" in caught.value.what
    for wrong in [[1], [None], 3]:
        with pytest.raises(TypeError):
            tailtrace.record(wrong)


@pytest.mark.parametrize("engine", ["pt", "bts", "lbr"])
def test_hardware_records_or_says_why_it_cannot(engine, program_path):
    try:
        _core.try_hardware(engine)
    except tailtrace.Error as refused:
        with pytest.raises(type(refused)) as caught:
            tailtrace.record([program_path], engine=engine)
        assert caught.value.why
    else:
        assert tailtrace.record([program_path], engine=engine).threads[0].engine == engine


def test_what_the_processor_cannot_record(program_path):
    with pytest.raises(tailtrace.UsageError):
        tailtrace.record([program_path], engine="pt", ring_records=1000)
    with pytest.raises(tailtrace.UsageError):
        tailtrace.record(["/no/such/program"], engine="pt")


def test_a_program_that_a_signal_ends():
    assert tailtrace.record(["/bin/sh", "-c", "kill -9 $$"]).exit_status == -9


def test_a_forked_child_has_names_too():
    trace = tailtrace.record(["/bin/sh", "-c", "(:); :"], engine="qemu")
    assert len({h.pid for h in trace.threads}) == 2
    for h in trace.threads:
        assert h.at(-1).function is not None
        assert any(call.module and (call.module.endswith("/sh") or
                                    call.module.endswith("/dash")) for call in h.calls(-5000))


def test_names_command_no_terminal(tmp_path):
    program = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs/hostile_names")
    trace = tailtrace.record([program])
    h = trace.threads[0]
    call = [call for call in h.calls() if (call.function or "").startswith("evil")][0]
    assert call.function == "evil\033[2J"  # as data it is what it is
    listings = [h[call.first - 1:call.last].listing(), h.calls(call.first - 1, call.last).listing()]
    trace.save(tmp_path / "run.tt")
    tool = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "plugin/tailtrace")
    for verb in ["history", "calls"]:
        listings.append(subprocess.run([tool, verb, tmp_path / "run.tt", "all"], check=True,
                                       text=True, stdout=subprocess.PIPE).stdout)
    scripts = os.path.join(os.path.dirname(__file__), "../../gdb-scripts/tailtrace.py")
    listings.append(gdb(program, f"source {scripts}", f"tailtrace load {tmp_path}/run.tt",
                        f"tailtrace function-call-history {call.number},+1"))
    for text in listings:
        assert "evil?[2J" in text and "\033" not in text


def test_why_it_crashed_is_of_what_was_not_executed(program_path):
    detours = os.path.join(os.path.dirname(program_path), "detours")
    thread = tailtrace.record([detours, "5"]).threads[0]
    why = thread.why()
    assert why.item is None
    check, call = why[0].decisions[0], why[1].decisions[0]
    assert check.taken is not None and check.item.function.endswith("read_odd(int)")
    assert call.taken is None and call.item.function.endswith("by_nothing()")
    before = thread.why(check.item.position)
    assert before.item == check.item and before[0].decisions[0] == call
