"""Bad input of every kind: one clear exception each, with its cause."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest
import rings
import tailtrace


def refusal(path, **more):
    with pytest.raises(tailtrace.Error) as caught:
        tailtrace.open(path, **more)
    return caught.value


def test_a_package_that_was_built_for_another_python(tmp_path):
    package = shutil.copytree(pathlib.Path(tailtrace.__file__).parent, tmp_path / "tailtrace",
                              ignore=shutil.ignore_patterns("__pycache__"))
    compiled, = package.glob("_core.*.so")
    compiled.rename(package / "_core.cpython-39-x86_64-linux-gnu.so")
    importing = subprocess.run([sys.executable, "-c", "import tailtrace"], cwd=tmp_path, text=True,
                               env={**os.environ, "PYTHONPATH": ""}, stderr=subprocess.PIPE)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert importing.stderr.splitlines()[-1] == (
        "ImportError: its compiled part, _core.cpython-39-x86_64-linux-gnu.so, is not for this "
        f"Python, {version}")


def test_a_missing_file(tmp_path):
    error = refusal(tmp_path / "none")
    assert isinstance(error, tailtrace.SystemCallError)
    assert error.what == f"cannot open {tmp_path}/none"
    assert error.why == "No such file or directory"
    assert error.fix.startswith("name a recording first: ")
    assert str(error) == (f"cannot open {tmp_path}/none\n  why:  No such file or directory\n"
                          f"  fix:  {error.fix}")


@pytest.mark.parametrize("content", [b"", b"x", b"not a ring at all" * 1000, rings.MAGIC])
def test_what_is_no_recording(tmp_path, content):
    path = tmp_path / "wrong"
    path.write_bytes(content)
    assert isinstance(refusal(path), tailtrace.BadInputError)


@pytest.mark.parametrize("offset, value", [(8, 2), (12, 0), (16, 31), (24, 0), (24, 100),
                                           (24, 1 << 40), (128, 5), (160, 0)])
def test_a_ring_whose_header_lies(tmp_path, offset, value):
    path = tmp_path / "bad.ring"
    content = bytearray(open(rings.write_example(path), "rb").read())
    struct.pack_into("<Q" if offset >= 24 else "<I", content, offset, value)
    path.write_bytes(content)
    assert isinstance(refusal(path), tailtrace.BadInputError)


def test_a_ring_that_is_cut_short(tmp_path):
    path = rings.write_example(tmp_path / "short.ring")
    os.truncate(path, os.path.getsize(path) - 1)
    assert "cut short" in refusal(path).why


def test_special_files(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert isinstance(refusal(tmp_path / "fifo"), tailtrace.BadInputError)
    assert isinstance(refusal(tmp_path), tailtrace.BadInputError)
    assert isinstance(refusal("/dev/null"), tailtrace.BadInputError)


def test_code_that_cannot_be(example_path):
    error = refusal(example_path, code=[((1 << 64) - 1, b"\x90\x90")])
    assert isinstance(error, tailtrace.UsageError) and isinstance(error, ValueError)
    for wrong in (-1, 1 << 64):
        error = refusal(example_path, code=[(wrong, b"")])
        assert error.what == f"cannot use {wrong} for an address of code"


@pytest.mark.parametrize("wrong", [3, None, [3], [(1,)], [(1, 2)], [(1, "x")], [("a", b"")],
                                   [(1, b"", 2)], b"code"])
def test_what_is_no_code(example_path, wrong):
    with pytest.raises(TypeError, match="code is given as pairs of an address and bytes, .*, not"):
        tailtrace.open(example_path, code=wrong)


def test_code_is_whatever_has_bytes(example_path):
    for code in (rings.CODE, bytearray(rings.CODE), memoryview(rings.CODE)):
        pieces = iter([(rings.CODE_AT, code)])
        assert len(tailtrace.open(example_path, code=pieces).threads[0]) == 6


def test_a_number_larger_than_any_is_told_as_it_was_given(example):
    large = 1 << 70
    for ask in (example.at, example.goto, example.number, example.why, lambda n: example[n],
                lambda n: example[:][n], example.all_calls.number, lambda n: example.all_calls[n],
                lambda n: tailtrace.record(["/bin/true"], ring_records=n)):
        with pytest.raises(tailtrace.Error, match=str(large)):
            ask(large)
    with pytest.raises(tailtrace.Error, match=f"ends {large - 5} items earlier"):
        example.goto(1).step(large)
    with pytest.raises(tailtrace.PositionError, match="ends 1 item earlier"):
        example.goto(-1).step()
    with pytest.raises(tailtrace.UsageError, match=f"{large:#x}"):
        example.find(address=large)
    assert len(example.find(until=large, limit=large)) == len(example) == 6
    assert example.source(-large) == example.source(large)


@pytest.mark.parametrize("wrong", [None, 3, 1.5, []])
def test_what_is_no_path(wrong):
    with pytest.raises(TypeError):
        tailtrace.open(wrong)


def test_a_name_that_is_no_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.ring"
    assert "\ufffd.ring" in refusal(name).what
    rings.write_example(os.fsdecode(name))
    assert len(tailtrace.open(name).threads) == 1


def test_a_path_with_a_nul():
    assert isinstance(refusal("a\0b"), tailtrace.UsageError)


def test_a_closed_history(example_path):
    with tailtrace.open(example_path, code=[(rings.CODE_AT, rings.CODE)]) as trace:
        h = trace.threads[0]
        view, insn, walk = h[-3:], h.at(-1), iter(h)
        assert next(walk).number == 1
    for use in [lambda: h.at(1), lambda: len(h), lambda: h.records, lambda: list(view),
                lambda: h.goto(), lambda: view.columns(), lambda: h.columns(),
                lambda: view.listing(), lambda: insn.text, lambda: h.stop]:
        with pytest.raises(tailtrace.GoneError) as caught:
            use()
        assert caught.value.why == "its trace was closed"
    assert len(list(walk)) == 5  # what was begun is finished
    assert insn.address == 0x1011
    trace.close()


@pytest.mark.parametrize("use", [
    lambda h: h.at("1"), lambda h: h["1"], lambda h: h[:]["1"], lambda h: h.goto(None),
    lambda h: h.source("5"), lambda h: h.hits(3), lambda h: h.hits("*0x1000", limit="2"),
    lambda h: h.last(3), lambda h: h.why([]), lambda h: h.why(-1, "9"), lambda h: h.diff(None),
    lambda h: h.diff(h, "2"), lambda h: h.diff(h, module=3), lambda h: h.find(kind=3),
    lambda h: h.find(symbol=3), lambda h: h.find(address="0x1000"), lambda h: h.find(since="now"),
    lambda h: h.find(limit=1.5), lambda h: h[:].counts("main"), lambda h: h[:].loops(None),
    lambda h: h.calls("main"), lambda h: h["main":], lambda h: h[:"9"], lambda h: h[::"1"],
    lambda h: h[:]["1":], lambda h: h.calls()["1"],
    lambda h: h.calls().number("1"), lambda h: h.calls().newest(None),
    lambda h: h.goto().step("1"), lambda h: h.goto().step_back(None), lambda h: h.goto().next(0.5),
    lambda h: tailtrace.record(["/bin/true"], ring_records="64"), lambda h: tailtrace.attach("1")])
def test_what_is_of_a_wrong_type_is_said_in_a_sentence(example, use):
    with pytest.raises(TypeError) as caught:
        use(example)
    said = str(caught.value)
    assert " is a " in said and ", not " in said and "\n" not in said, said


@pytest.mark.parametrize("use", [
    lambda h: h.hits("*0x1000", limit=-1), lambda h: h.find(limit=-5), lambda h: h.diff(h, -1),
    lambda h: h.why(-1, -1), lambda h: h.find(address=-1), lambda h: h.find(until=-1),
    lambda h: h[:].counts(-5, 1), lambda h: h[:].loops(-1), lambda h: h.calls().newest(-1),
    lambda h: tailtrace.record(["/bin/true"], ring_records=-1), lambda h: h.find(symbol=""),
    lambda h: tailtrace.record(["/bin/echo", "a\0b"])])
def test_what_is_too_small_or_no_word_is_refused(example, use):
    with pytest.raises(tailtrace.UsageError) as caught:
        use(example)
    assert caught.value.why


def test_numbers_beyond_all_that_there_is_mean_all(example):
    everything = list(example)
    assert example.find(limit=1 << 80) == everything
    assert len(example[:].counts(0, 1 << 80)) == len(everything)
    assert example.calls().newest(1 << 80) != []


def test_every_exception_is_an_error_with_its_parts():
    for code in range(1, 9):
        error = tailtrace.errors.from_parts(code, "a", "b", "c", "d")
        assert isinstance(error, tailtrace.Error) and type(error) is not tailtrace.Error
        assert (error.what, error.why, error.fix, error.now) == ("a", "b", "c", "d")
        assert str(error) == "a\n  why:  b\n  fix:  c\n  now:  d"
    assert type(tailtrace.errors.from_parts(99, "a", "", "", "")) is tailtrace.Error


def test_records_of_noise_never_crash(tmp_path):
    import random
    for seed in range(30):
        noise = random.Random(seed)
        every = [noise.randbytes(32) for _ in range(noise.randrange(300))]
        path = rings.write_ring(tmp_path / f"{seed}.ring", every, stands_at=noise.getrandbits(64),
                                run_insns=noise.getrandbits(64))
        h = tailtrace.open(path, code=[(0x1000, noise.randbytes(4096))]).threads[0]
        assert len(list(h)) == len(h) == len(h[:].columns()["position"])
        h[:].listing()
