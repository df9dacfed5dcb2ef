"""What was saved reads the same on another day."""

import json
import os
import shutil
import subprocess

import pytest
import tailtrace


def everything(h):
    return [(item.number, item.address, getattr(item, "bytes", None), getattr(item, "text", None),
             item.time, getattr(item, "function", None)) for item in h]


def test_reads_as_what_was_saved(recorded, tmp_path):
    recorded.save(tmp_path / "run.tt")
    again = tailtrace.open(tmp_path / "run.tt")
    assert len(again.threads) == len(recorded.threads)
    for h, saved in zip(recorded.threads, again.threads):
        assert (saved.pid, saved.tid, saved.engine) == (h.pid, h.tid, h.engine)
        assert (saved.complete, saved.gaps, saved.stop) == (h.complete, h.gaps, h.stop)
        assert saved.first_record == h.first_record
        assert everything(saved) == everything(h)
        # The reader's own last record, of where the thread stands, is saved as well.
        assert (saved.records[:len(h.records)] == h.records).all()
        assert [call for call in saved.calls()] == [call for call in h.calls()]


def test_callers_from_before_a_stretch_are_those_of_the_whole(tmp_path):
    build = os.environ["TAILTRACE_BINARY_DIR"]
    subprocess.run([build + "/plugin/tailtrace", "run", "--on-crash", "a.tt", "--",
                    build + "/tests/programs/waits_for_words"], cwd=tmp_path, input="crash\n",
                   text=True, capture_output=True, check=False)
    h = tailtrace.open(tmp_path / "a.tt").threads[0]
    whole, newest = h.calls(), h.calls(-2)
    names = [call.function for call in whole.stack(-1)]
    assert names[:5] == ["deeper"] * 4 + ["main"]
    recorded, older = newest.stack(-1), newest.older_callers(-1)
    assert [call.function for call in recorded] == ["deeper"]
    assert [caller.function for caller in older] == names[1:1 + len(older)]
    assert len(older) > 4 and older[3].file.endswith("waits_for_words.c")
    assert whole.older_callers(-1) == []


def test_what_a_bundle_tells_beside_its_histories_is_kept(tmp_path):
    command = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "plugin/tailtrace")
    subprocess.run([command, "run", "--on-crash", "a.tt", "--", "/bin/sh", "-c", "kill -SEGV $$"],
                   cwd=tmp_path, capture_output=True, check=False)
    tailtrace.open(tmp_path / "a.tt").save(tmp_path / "b.tt")
    told = [json.loads(subprocess.run([command, "info", "--json", name], cwd=tmp_path, check=True,
                                      capture_output=True, text=True).stdout)
            for name in ("a.tt", "b.tt")]
    assert told[0]["recorded"] == told[1]["recorded"]
    threads = [info["threads"][0] for info in told]
    assert threads[0]["registers"] == threads[1]["registers"]
    assert threads[0]["name"] == threads[1]["name"] != ""


def test_records_are_the_files_bytes_in_place(recorded, tmp_path):
    recorded.save(tmp_path / "run.tt")
    trace = tailtrace.open(tmp_path / "run.tt")
    records = trace.threads[0].records
    assert records.tobytes() == (tmp_path / "run.tt" / "1.records").read_bytes()
    with open("/proc/self/maps") as maps:
        assert any("1.records" in line for line in maps)
    trace.close()
    shutil.rmtree(tmp_path / "run.tt")
    assert records["insns"].sum() > 1000  # kept as long as the array
    del records, trace
    with open("/proc/self/maps") as maps:
        assert not any("1.records" in line for line in maps)


def test_only_its_user_can_read_it(example_path, tmp_path):
    tailtrace.open(example_path).save(tmp_path / "a.tt")
    assert (tmp_path / "a.tt").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a.tt").iterdir()} == {0o600}


def test_nothing_is_written_over(example_path, tmp_path):
    trace = tailtrace.open(example_path)
    trace.save(tmp_path / "a.tt")
    with pytest.raises(tailtrace.UsageError) as caught:
        trace.save(tmp_path / "a.tt")
    assert caught.value.why == "something is there already"
    assert os.listdir(tmp_path / "a.tt") and not list(tmp_path.glob("a.tt.*"))


@pytest.mark.parametrize("damage, error, why", [
    (lambda p: os.truncate(p / "1.records", 31), tailtrace.BadInputError, "it has 31 bytes"),
    (lambda p: (p / "1.records").unlink(), tailtrace.Error, "No such file"),
    (lambda p: (p / "1.stream").unlink(), tailtrace.Error, "No such file"),
    (lambda p: (p / "1.stream").write_bytes(b"nothing"), tailtrace.BadInputError, "")])
def test_damage_is_said(example_path, tmp_path, damage, error, why):
    tailtrace.open(example_path).save(tmp_path / "a.tt")
    damage(tmp_path / "a.tt")
    h = tailtrace.open(tmp_path / "a.tt").threads[0]
    with pytest.raises(error) as caught:
        len(h)
    assert why in caught.value.why and caught.value.why


def test_the_command_line_reads_it(recorded, tmp_path):
    recorded.save(tmp_path / "run.tt")
    command = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "plugin/tailtrace")
    said = subprocess.run([command, "history", "--json", tmp_path / "run.tt"], check=True,
                          text=True, stdout=subprocess.PIPE).stdout
    assert f'"{recorded.threads[0].at(-1).address:#x}"' in said


def test_what_lldb_cannot_show_is_a_warning(tmp_path):
    programs = os.path.join(os.environ["TAILTRACE_BINARY_DIR"], "tests/programs")
    program, *libraries = (os.path.join(programs, name) for name in
                           ("replaces_library", "first_same.so", "second_same.so"))
    with pytest.warns(RuntimeWarning, match="LLDB cannot show all that ran in .*first_same.so"):
        tailtrace.record([program, *libraries], engine="qemu").save(tmp_path / "a.tt")


def test_a_bundle_of_another_version_is_refused(tmp_path):
    (tmp_path / "a.tt").mkdir()
    (tmp_path / "a.tt" / "bundle.json").write_text('{"schema": "tailtrace.bundle/2"}')
    with pytest.raises(tailtrace.BadInputError) as caught:
        tailtrace.open(tmp_path / "a.tt")
    assert 'it is of the version "tailtrace.bundle/2"' in str(caught.value)
