"""Items, slices, columns and cursors of a history."""

import collections.abc
import threading

import pytest
import rings
import tailtrace


def test_shows_what_was_executed(example):
    assert [insn.address for insn in example] == rings.EXAMPLE_ADDRESSES
    assert [insn.text for insn in example] == ["nop", "jz 0x1005", "jmp 0x1008", "call 0x1010",
                                               "nop", "ret"]
    assert b"".join(insn.bytes for insn in example) == bytes.fromhex("907402eb03e80300000090c3")
    assert (example.pid, example.tid, example.engine) == (42, 43, "")
    assert (example.stop, example.gaps, example.complete) == (0x100d, 0, True)
    assert not example.live


def test_tells_all_of_an_item(example):
    jump = example.at(3)
    assert isinstance(jump, tailtrace.Instruction)
    assert (jump.number, jump.position, jump.record) == (3, -4, 1)
    assert (jump.kind, jump.branch, jump.target, jump.to) == ("jump", "jump", 0x1008, 0x1008)
    assert (jump.size, jump.taken, jump.time) == (2, None, None)
    assert (example.at(2).kind, example.at(2).taken, example.at(2).to) == ("conditional", False,
                                                                           None)
    assert example.at(4).time == 7
    assert repr(jump) == "<Instruction [-4] 0x1003 jmp 0x1008>"


def test_tells_of_gaps(tmp_path):
    records = [rings.record(rings.ENABLE, to=0x1010, extra=1),
               rings.record(rings.RETURN, 0x1011, 0x9000, insns=2),
               rings.record(rings.JUMP, 0x9004, 0x1010, insns=5)]
    path = rings.write_ring(tmp_path / "gap.ring", records, stands_at=0x1010)
    h = tailtrace.open(path, code=[(rings.CODE_AT, rings.CODE)]).threads[0]
    gap = h.at(-1)
    assert isinstance(gap, tailtrace.Gap)
    assert (len(h), h.gaps) == (3, 1)
    assert (gap.number, gap.reason, gap.address, gap.lost) == (3, "no-code", 0x9000, 5)
    assert gap.lost_more is False
    assert repr(gap) == "<Gap [-1]: 5 instructions not shown: the code at 0x9000 is not known>"
    assert h[:].columns()["gap"].tolist()[:2] == [0, 0]
    assert h[:].columns()["gap"][2] != 0
    assert "-- gap [-1]: 5 instructions not shown" in h[:].listing()


def test_items_are_equal_when_they_are_the_same(example):
    assert example.at(2) == example.at(-5) and example.at(2) != example.at(3)
    assert len({example.at(2), example.at(-5), example.at(3)}) == 2
    assert example.at(1) != 1
    with pytest.raises(TypeError):
        tailtrace.Instruction()


@pytest.mark.parametrize("begin", [None, 0, 1, -1, -3, 5, 6, 7, -9])
@pytest.mark.parametrize("end", [None, 0, 2, -1, -2, 6, 9])
@pytest.mark.parametrize("step", [None, 1, 2, -1, -3])
def test_slices_as_a_list_does(example, begin, end, step):
    expected = rings.EXAMPLE_ADDRESSES[begin:end:step]
    view = example[begin:end:step]
    assert [insn.address for insn in view] == expected
    assert len(view) == len(expected)
    assert [insn.address for insn in reversed(view)] == expected[::-1]
    assert [view[i].address for i in range(-len(expected), len(expected))] == expected * 2
    assert [insn.address for insn in view[1:]] == expected[1:]
    assert view.columns()["address"].tolist() == expected


def test_is_a_sequence(example):
    assert isinstance(example[:], collections.abc.Sequence)
    assert example.at(3) in example[:]
    assert example[:].index(example.at(3)) == 2
    assert example[0] == example.at(1) and example[-1] == example.at(-1)


@pytest.mark.parametrize("position", [0, 7, -7, 1 << 70, -(1 << 70)])
def test_refuses_positions_that_are_not_there(example, position):
    with pytest.raises(tailtrace.PositionError) as caught:
        example.at(position)
    assert isinstance(caught.value, IndexError)
    assert caught.value.why == "the history has 6 items"
    if position != 0:
        with pytest.raises(IndexError):
            example[position]
        with pytest.raises(IndexError):
            example[1:3][position]
    with pytest.raises(tailtrace.PositionError):
        example.goto(position)


@pytest.mark.parametrize("wrong", ["1", None, 1.5, object()])
def test_refuses_what_is_no_position(example, wrong):
    with pytest.raises(TypeError):
        example.at(wrong)
    with pytest.raises(TypeError):
        example[wrong]


def test_columns_hold_what_the_items_say(open_loop):
    h = open_loop(3000, 1024)
    view = h[-2000:]
    columns = view.columns()
    for name in ["position", "address", "size", "record"]:
        assert columns[name].tolist() == [getattr(insn, name) for insn in view]
    assert columns["taken"].tolist() == [-1 if i.taken is None else int(i.taken) for i in view]
    assert columns["to"].tolist() == [i.to or 0 for i in view]
    assert columns["branch"].tolist() == [rings.CONDITIONAL if i.branch else 0 for i in view]


def test_a_listing_takes_whatever_is_true_or_not(open_loop):
    h = open_loop(100, 1024)
    assert h[:].listing(fold="yes", lines=None) == h[:].listing(fold=True, lines=False)
    assert h.calls().listing(from_newest=0) == h.calls().listing(from_newest=False)


def test_walks_far_more_than_a_batch_in_both_directions(open_loop):
    h = open_loop(20_000, 1 << 15)
    assert len(h) == 40_000
    assert [insn.address for insn in h] == [0x2000, 0x2002] * 20_000
    assert [insn.number for insn in reversed(h[:])] == list(range(40_000, 0, -1))


def voluntary_switches():
    with open("/proc/thread-self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))


def test_an_index_is_not_waited_for(open_loop):
    h = open_loop(3000, 8192)
    assert h[-5000].position == -5000
    before = voluntary_switches()
    assert sum(h[index].address != 0 for index in range(-1000, 0)) == 1000
    assert voluntary_switches() - before < 100  # one each: it was asked of a thread made for that


def test_cursor_steps_back_and_forth(example):
    cursor = example.goto()
    seen = [cursor.item.address]
    while cursor.number > 1:
        seen.append(cursor.step_back().address)
    assert seen == rings.EXAMPLE_ADDRESSES[::-1]
    with pytest.raises(tailtrace.PositionError):
        cursor.step_back()
    assert (cursor.number, cursor.position) == (1, -6)
    assert cursor.step(5).address == 0x1011
    with pytest.raises(tailtrace.PositionError):
        cursor.step()
    assert cursor.goto(-2) == example.at(5)
    assert repr(cursor) == "<Cursor on <Instruction [-2] 0x1010 nop>>"


def test_is_read_by_many_threads_at_once(open_loop):
    h = open_loop(20_000, 1 << 15)
    results = []

    def walk():
        results.append([insn.address for insn in h] + [h.at(-1 - i).number for i in range(100)])

    threads = [threading.Thread(target=walk) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(result == results[0] for result in results)


def test_one_iterator_in_two_threads_shows_every_item_once(open_loop):
    h = open_loop(20_000, 1 << 15)
    iterator = iter(h)
    seen = [[], []]

    def walk(mine):
        while True:
            try:
                mine.append(next(iterator).number)
            except ValueError:
                continue
            except StopIteration:
                return

    threads = [threading.Thread(target=walk, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen[0] + seen[1]) == list(range(1, 40_001))


def test_an_empty_history_is_empty(tmp_path):
    h = tailtrace.open(rings.write_ring(tmp_path / "empty.ring", [])).threads[0]
    assert len(h.records) == 0
    assert list(h[len(h):]) == []
    assert h[:0].listing() == ""
    assert h[:0].columns()["address"].tolist() == []


def test_shows_itself_in_a_line_and_in_a_notebook(example):
    assert repr(example) == "<History of thread 43>"
    assert repr(example[-2:]) == "<2 items of thread 43: -2 to -1>"
    assert repr(example[:0]) == "<no items of thread 43>"
    page = example._repr_html_()
    assert page.startswith("<details open><summary>&lt;6 items of thread 43: -6 to -1&gt;")
    assert "jmp   0x1008" in page and page.endswith("</pre></details></details>")


def test_listing_has_the_words_that_were_asked_for(example):
    text = example[-2:].listing(from_newest=False, addresses=True, bytes=True)
    assert [line.split() for line in text.splitlines()] == [
        ["(no", "symbol)"], ["[5]", "0x1010", "90", "nop"],
        ["[6]", "0x1011", "c3", "ret", "->", "0x100d"]]
    with pytest.raises(tailtrace.PositionError):
        example[::2].listing()


def test_the_newest_is_shown_without_reading_the_rest(open_loop):
    """What is kept of segments that were read tells how many were."""
    h = open_loop(1 << 21, 1 << 22)
    text = h[-50:].listing()
    assert "[-50]" in text and "[-1]" in text
    assert h[-1].position == -1 and h.at(-2).text == "dec ecx" and h.stop == rings.LOOP_AT
    assert repr(h.goto().step_back(3)) == "<Instruction [-4] 0x2000 dec ecx>"
    assert len(h[-2000:-1000].columns()["position"]) == 1000
    assert "items of thread" in h._repr_html_() and len(h.calls(-100)) == 1
    newest = [item.position for item, _ in zip(reversed(h), range(1000))]
    assert newest == list(range(-1, -1001, -1))
    assert h.last("*0x2002").position == -1
    assert h[::-1].find(kind="taken", limit=3)[-1].position == -5
    read = h._core.index_bytes
    assert len(h) == 2 << 21 and h.at(-1).number == 2 << 21
    assert read * 4 < h._core.index_bytes


def test_reversed_views_that_were_not_counted_are_like_others(example):
    for make in [lambda: example[::-1], lambda: example[-2::-1], lambda: example[::-2]]:
        addresses = [insn.address for insn in make()]
        assert len(make()) == len(addresses) and make()[0].address == addresses[0]
        assert [insn.address for insn in make()[1:3]] == addresses[1:3]
        assert [insn.address for insn in reversed(make())] == addresses[::-1]
        assert [insn.address for insn in make().find(limit=2)] == addresses[:2]
        assert make().positions[-1] == make()[-1].position


def test_calls_that_corrupt_records_describe_in_a_circle_come_to_an_end(example, monkeypatch):
    class Circle:
        size = 2

        def holding(self, position):
            return 1

        def fields(self, number):
            return number, "f", "m", 0, 1, 6, 3 - number, 3 - number, 3 - number, False, False

        def last_part(self, number):
            return 2

    monkeypatch.setattr(example.all_calls, "_core", Circle())
    assert [call.number for call in example.all_calls.stack(-1)] == [1, 2]
    with pytest.raises(tailtrace.PositionError):
        example.goto(-1).finish()


def test_what_has_no_line_is_gone_to_from_a_gap(tmp_path):
    records = rings.example_records()
    records.insert(2, rings.record(rings.GAP, 0, 0x1008))
    path = rings.write_ring(tmp_path / "gap.ring", records, stands_at=0x100d)
    h = tailtrace.open(path, code=[(rings.CODE_AT, rings.CODE)]).threads[0]
    gap = h.find(kind="gap")[0].number
    assert h.goto(gap).next().number == gap + 1
    assert h.goto(gap).next_back().number < gap


def test_one_of_them_is_told_as_one(example):
    assert repr(example[-1:]) == "<1 item of thread 43: -1 to -1>"
    assert repr(example.calls(-1)) == "<1 call of thread 43>"
    assert repr(example.columns()).startswith("<4 rows of from, ")
