"""Walking by line and call, source lines, and comparing runs; the program's source is the truth."""

import ast
import os
import shutil
import subprocess

import pytest
import rings
import tailtrace

SOURCE = os.path.join(os.path.dirname(__file__), "..", "programs", "three_rounds.c")
with open(SOURCE) as source:
    LINES = source.read().splitlines()


def line_of(text):
    return [number for number, line in enumerate(LINES, 1) if text in line][0]


@pytest.fixture
def h(recorded):
    return recorded.threads[0]


def program_of(name):
    return os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs", name)


def run(name, *words):
    return tailtrace.record([program_of(name), *words], engine="qemu").threads[0]


def lines_from(h, item, count):
    """Function and line of where `next` leads, so many times."""
    cursor = h.goto(item.number)
    items = [cursor.next() for _ in range(count)]
    names = [item.function.removeprefix("(anonymous namespace)::") for item in items]
    return [(name, item.line) for name, item in zip(names, items)]


def marked(mark):
    """The line of tests/programs/detours.cpp with that comment."""
    with open(os.path.join(os.path.dirname(SOURCE), "detours.cpp")) as source:
        return [number for number, line in enumerate(source, 1) if mark in line.split()][0]


def test_next_back_goes_over_calls_and_out_to_the_caller(h):
    cursor = h.goto(h.hits("clean_up")[-1].number)
    seen = []
    for _ in range(4):
        item = cursor.next_back()
        seen.append((item.function, item.line))
    assert seen == [("main", line_of("clean_up(room);")), ("main", line_of("total += twice(i);")),
                    ("main", line_of("malloc(16)")), ("main", line_of("for (int i"))]


def test_next_goes_forward_over_calls(h):
    cursor = h.goto(h.hits("twice")[1].number)
    lines = [cursor.item.line] + [cursor.next().line for _ in range(3)]
    assert lines == [line_of("x = inc(x);"), line_of("return inc(x) + 1;"),
                     line_of("clean_up(room);"), line_of("for (int i")]
    assert cursor.item.function == "main"


def test_next_goes_over_what_is_inlined():
    h = run("inlined_often")
    inside = next(item for item in h[h.number(h.hits("twice")[0].position):]
                  if not isinstance(item, tailtrace.Gap) and len(item.inlined) == 2)
    names, places = [one[0] for one in inside.inlined], [one[1:] for one in inside.inlined]
    assert (inside.function, names) == ("twice", ["add", "add_all"])
    assert [os.path.basename(file) for file, _ in places] == ["inlined_often.c"] * 2
    assert [line for _, line in places] == [10, 14]
    cursor = h.goto(inside.number)
    assert [(cursor.next().function, *cursor.place[::2]) for _ in range(4)] == [
        ("twice", "add_all", 10), ("twice", "twice", 15), ("twice", "twice", 16),
        ("main", "main", 23)]
    cursor.goto(h.hits("twice")[0].number)
    cursor.next(2)
    # Lines 14 and 16 have nothing but what is inlined: there their calls are. As GDB has them:
    assert [(cursor.next_back().function, cursor.place.line) for _ in range(3)] == [
        ("twice", 15), ("twice", 14), ("main", 22)]


def gdb_places(program, before, commands):
    """Where stock GDB stands after each of the commands: offset from main, function and line."""
    say = ("python f = gdb.selected_frame(); print('@@', (f.pc() - int(gdb.parse_and_eval("
           "'(long)&main')), f.name(), f.find_sal().line))")
    words = ["set debuginfod enabled off", *before]
    for command in commands:
        words += [command, say]
    said = subprocess.run(["gdb", "-nx", "-q", "-batch", *(w for c in words for w in ("-ex", c)),
                           program_of(program)],
                          capture_output=True, text=True, check=True, timeout=60).stdout
    return [ast.literal_eval(line[2:].strip()) for line in said.splitlines()
            if line.startswith("@@")]


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_lines_are_those_of_gdb():
    h = run("inlined_often")
    main = h.hits("main")[0].address
    cursor = h.goto(h.hits("twice")[0].number)
    while cursor.item.line != 15:
        cursor.step()
    ways = [cursor.next, cursor.next_back, cursor.next_back, cursor.next_back, cursor.next_back]
    ours = [(way().address - main, *cursor.place[::2]) for way in ways]
    assert ours == gdb_places(
        "inlined_often", ["break main", "run", "record full", "tbreak inlined_often.c:15",
                          "continue"], ["next", *["reverse-next"] * 4])


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_next_stops_where_gdb_does_in_lines_that_an_optimizer_mixed():
    h = run("mixed_lines")
    main = h.hits("main")[0].address
    cursor = h.goto(h.hits("work")[0].number)
    ours = [(cursor.next().address - main, *cursor.place[::2]) for _ in range(30)]
    assert {function for _, function, _ in ours} == {"work", "main"}
    assert ours == gdb_places("mixed_lines", ["break *work", "run", "delete"], ["next"] * 30)


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_next_back_goes_over_single_instructions_that_are_no_statement_as_gdb_does():
    h = run("mixed_lines")
    main = h.hits("main")[0].address
    cursor = h.goto(h.last("mixed_lines.c:31").number)
    ours = [(cursor.next_back().address - main, *cursor.place[::2]) for _ in range(3)]
    assert ours == gdb_places("mixed_lines", ["break main", "run", "record full",
                                              "tbreak mixed_lines.c:31", "continue"],
                              ["reverse-next"] * 3)


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
@pytest.mark.parametrize("function, count", [
    ("even", 20), ("spin", 11), ("spin_in_a_line", 2), ("waits_for", 11)])
def test_next_goes_on_where_a_function_jumps_to_at_its_end(function, count):
    h = run("ends_in_jumps")
    main = h.hits("main")[0].address
    cursor = h.goto(h.hits(function)[0].number)
    ours = [(cursor.next().address - main, *cursor.place[::2]) for _ in range(count)]
    assert ours[-1][1] == "main"
    assert ours == gdb_places("ends_in_jumps", [f"break *{function}", "run", "delete"],
                              ["next"] * count)


def test_next_back_goes_out_of_a_loop_of_one_line_where_its_function_begins():
    h = run("ends_in_jumps")
    cursor = h.goto(h.last("spin_in_a_line").number)
    assert h.at(cursor.number - 1).kind == "jump"
    assert cursor.next_back().function == "spin_in_a_line"
    assert h.at(cursor.number - 1).kind == "call"
    assert cursor.next_back().function == "waits_for"


def test_where_several_lines_begin_it_is_of_the_last_that_begins_a_statement(tmp_path):
    # As GDB has it: find_pc_sect_line() in its symtab.c.
    source, program = tmp_path / "rows.s", str(tmp_path / "rows")
    source.write_text("""
.file 1 "rows.c"
.globl main
.type main, @function
main:
.loc 1 7 is_stmt 1
.loc 1 3 is_stmt 0
  xor %eax, %eax
.loc 1 8 is_stmt 0
  ret
.size main, .-main
.section .note.GNU-stack,"",@progbits
""")
    subprocess.run(["gcc", "-g", "-o", program, source], check=True)
    h = tailtrace.record([program], engine="qemu").threads[0]
    first = h.hits("main")[0].number
    assert [(h.at(first + i).line, h.at(first + i).begins_line) for i in (0, 1)] == [
        (7, True), (8, False)]


def test_a_negative_count_goes_the_other_way(h):
    start = h.hits("twice")[1].number
    there, back = h.goto(start), h.goto(start)
    assert there.next(-2) == back.next_back(2) and there.number < start
    assert there.next_back(-1) == back.next(1)


def test_finish_and_finish_back_are_the_ends_of_a_call(h):
    first = h.hits("inc")[2]
    cursor = h.goto(first.number)
    assert cursor.call.function == "inc"
    called_at = cursor.finish_back()
    assert (called_at.kind, called_at.function, called_at.to) == ("call", "twice", first.address)
    assert called_at.number == first.number - 1
    cursor.goto(first.number)
    returned_to = cursor.finish()
    assert returned_to.address == called_at.address + called_at.size
    assert returned_to.function == "twice"


def test_a_function_that_ends_in_a_jump_to_another_returns_to_its_caller():
    h = run("tail_calls")
    first = [item for item in h.hits("even") if h.at(item.number - 1).kind == "call"][3]
    assert h.at(h.goto(first.number).call.last + 1).function == "odd"
    returned_to = h.goto(first.number).finish()
    assert returned_to.function == "main"
    assert returned_to.number == h.goto(first.number + 8).finish().number
    called_at = h.at(first.number - 1)
    assert returned_to.address == called_at.address + called_at.size


def test_a_function_that_throws_ends_where_that_is_caught():
    h = run("detours", "0")
    thrower = h.last("odd_throws")
    assert h.goto(thrower.number).finish().line == marked("throw#1") - 1
    assert h.goto(thrower.number).finish().function.endswith("by_exception()")


def test_a_function_that_is_jumped_out_of_ends_where_that_leads():
    h = run("detours", "1")
    for name in ("crash", "jump_out"):
        assert h.goto(h.last(name).number).finish().line == marked("jump#2")
    # It leads into the middle of a line.
    assert lines_from(h, h.last("by_jump"), 3) == [
        ("by_jump()", marked("jump#2") + more) for more in (0, 1, 3)]
    cursor = h.goto(h.last("arrived").number)
    assert [cursor.next_back().line - marked("jump#2") for _ in range(3)] == [3, 0, 1]


def test_next_goes_on_in_a_part_that_was_put_elsewhere():
    h = run("detours", "4")
    lines = lines_from(h, h.last("by_unlikely_part"), 12)
    first = marked("unlikely#3")
    assert [line - first for _, line in lines] == [1, 0, 1, 0, 1, 0, 1, 2, 3, 0, 1, 0]
    assert lines[7][0] == lines[8][0] == "by_unlikely_part() [clone .cold]"
    cursor = h.goto(h.last("arrived").number)
    assert [cursor.next_back().line - first for _ in range(4)] == [3, 2, 1, 0]


def test_what_did_not_return_is_not_gone_into(h):
    cursor = h.goto(h.last("exit").number)
    assert cursor.call.last < len(h)
    for move in (cursor.finish, lambda: cursor.next(100)):
        with pytest.raises(tailtrace.PositionError):
            move()


def test_a_caller_that_is_older_than_the_history_is_not_before_the_call(tmp_path):
    records = [rings.record(rings.ENABLE, to=0x1010, extra=1),
               rings.record(rings.RETURN, 0x1011, 0x1003, insns=2),
               rings.record(rings.JUMP, 0x1003, 0x1008, insns=1),
               rings.record(rings.CALL, 0x1008, 0x1010, insns=1)]
    path = rings.write_ring(tmp_path / "ring", records, stands_at=0x1010)
    h = tailtrace.open(path, code=[(rings.CODE_AT, rings.CODE)]).threads[0]
    assert h.goto(1).finish().address == 0x1003
    for move in (h.goto(1).finish_back, h.goto(1).next_back):
        with pytest.raises(tailtrace.PositionError):
            move()


def test_there_is_an_end_to_it(h):
    cursor = h.goto(1)
    with pytest.raises(tailtrace.PositionError):
        cursor.finish_back()
    with pytest.raises(tailtrace.PositionError):
        cursor.next_back(100)
    assert cursor.number == 1
    cursor.goto(-1)
    with pytest.raises(tailtrace.PositionError):
        cursor.finish()
    with pytest.raises(tailtrace.PositionError):
        cursor.next(100)
    assert cursor.position == -1


def test_source_lines_are_those_that_were_executed(h):
    lines = h.source(-100_000)
    mine = [line for line in lines if line.file.endswith("three_rounds.c")]
    assert all(line.text == LINES[line.line - 1] for line in mine)
    assert sum(line.line == line_of("return x + 1;") for line in mine) == 6
    for line in mine[-20:]:
        assert {(item.file, item.line) for item in h[line.first - 1:line.last]} == {
            (line.file, line.line)}
    assert h.source(-5) == lines[-5:]
    assert h.source(3) == lines[:3]
    assert h.source(-1)[0].last <= len(h)


def test_the_oldest_lines_are_found_without_the_rest(h, monkeypatch):
    lines = h.source(-100_000)
    seen = []
    for_each = tailtrace.View.__iter__
    monkeypatch.setattr(tailtrace.View, "__iter__",
                        lambda view: (seen.append(item) or item for item in for_each(view)))
    assert h.source(3) == lines[:3]
    assert seen[-1].number == lines[3].first < len(h)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_lines_end_where_compilers_end_them(tmp_path):
    # As in many of GNU's files. Nor is a line ended by what Unicode calls a line's end.
    source = tmp_path / "fed.c"
    source.write_bytes(b"/* a page */\f\n/* \xe2\x80\xa8 \x0b */\nint main(void) { return 0; }\n")
    subprocess.run(["gcc", "-g", source, "-o", tmp_path / "fed"], check=True)
    h = tailtrace.record([os.fspath(tmp_path / "fed")], engine="qemu").threads[0]

    def texts():
        return {line.text for line in h.source(-100_000) if line.function == "main"}

    assert texts() == {"int main(void) { return 0; }"}
    # A pipe is not waited for.
    source.unlink()
    os.mkfifo(source)
    assert texts() == {None}


def test_a_loop_tells_where_it_was_left(h):
    line = line_of("for (int i")
    own = [loop for loop in h[:].loops(2) if h.at(loop.first).function == "main"]
    assert [(loop.rounds, h.at(loop.last + 1).address == loop.head) for loop in own] == [(2, True)]
    # Behind the last jump back comes a last round, which ends where it is asked whether to go on.
    left = [item for item in h[own[0].last:] if item.address == own[0].exit]
    assert [item.line for item in left] == [line]
    assert tailtrace.Loop(1, 2, 3, 4, 5, None).exit is None


def test_an_inlined_function_is_found_where_it_was_put():
    h = run("inlined")
    assert {item.function for item in h.hits("add")} == {"add_twice"}
    assert len(h.hits("add")) == 2
    cursor = h.goto(h.hits("add")[1].number)
    assert (cursor.place.function, cursor.place.line) == ("add", 5)
    cursor.next_back()
    assert (cursor.place.function, cursor.place.line) == ("add_twice", 9)
    cursor.next()
    assert (cursor.place.function, cursor.place.line) == ("add_twice", 10)
    assert cursor.item == h.hits("add")[1]


def test_a_run_is_not_different_from_itself_loaded_elsewhere(program_path):
    one, other = (tailtrace.record([program_path]).threads[0] for _ in range(2))
    found = one.diff(other)
    assert not found and found.first is None and repr(found) == "<no difference>"


def test_the_first_difference_is_where_the_runs_parted(tmp_path):
    program = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs/overrun")
    good = tailtrace.record([program, "Ada"]).threads[0]
    bad = tailtrace.record([program, "Eve"]).threads[0]
    assert not good.diff(bad)
    longer = tailtrace.record([program, "Augusta"]).threads[0]
    found = good.diff(longer)
    assert found and "difference" in repr(found)
    copying = [change for change in found if change.function == "copy"]
    assert copying and copying[0].what == "path"
    first = copying[0]
    assert good.at(first.here[0]).function == longer.at(first.there[0]).function == "copy"
    assert len(good.diff(longer, limit=1)) == 1
    asked = good.diff(longer, limit=0)
    assert not asked and asked.more and repr(asked) == "<some difference>"


def test_code_that_neither_run_executed_cannot_be_compared(h):
    assert not h.diff(h, module="three_rounds")
    with pytest.raises(tailtrace.UsageError) as caught:
        h.diff(h, module="nosuch")
    assert caught.value.what == "cannot compare code of nosuch"


def test_html_is_a_folded_tree(h):
    text = h[-3000:]._repr_html_()
    assert text.count("<details") == text.count("</details>") > 3
    assert "twice" in text and "<summary>" in text
    whole = h._repr_html_()
    assert whole.count("<details") == whole.count("</details>") > 1
    assert h[:0]._repr_html_().count("<details") == h[:0]._repr_html_().count("</details>")
    assert h.calls(-3000)._repr_html_().count("inc &times;2 ") == 3


def test_next_back_goes_out_of_a_function_of_one_line_that_calls_itself_once_at_a_time():
    h = run("recursion")
    cursor = h.goto(h.last("fibonacci").number)
    depth = len([call for call in h.all_calls.stack(cursor.number) if call.function == "fibonacci"])
    assert depth > 3
    for left in range(depth - 1, 0, -1):
        assert cursor.next_back().function == "fibonacci"
        stack = h.all_calls.stack(cursor.number)
        assert [call.function for call in stack[:left + 1]] == ["fibonacci"] * left + ["main"]
    assert cursor.next_back().function == "main"
