"""LLDB's trace bundles: of one written here byte by byte, and of real ones from hardware."""

import json
import lzma
import os
import pathlib
import struct

import numpy
import pytest
import rings
import tailtrace

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL = pathlib.Path(os.environ.get("TAILTRACE_REAL_PT", ROOT.parent / "shared/data/real-pt"))


def elf(code, address):
    """The smallest file that holds code: a header, one segment, and the code."""
    offset = 64 + 56
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, offset, address, address, len(code), len(code), 1)
    return head + segment + code


def ip(header, address):
    """A packet with an address of six bytes."""
    return bytes([header]) + struct.pack("<Q", address)[:6]


PSB, MODE_64, PSBEND, PGD_WITHOUT_IP = b"\x02\x82" * 8, b"\x99\x01", b"\x02\x23", b"\x01"
PGE, TIP, FUP = 0x71, 0x6d, 0x7d
NOT_TAKEN = b"\x04"
# What rings.example_records() tell: 1000 1001 1003 1008 1010 1011, and 100d is next.
TRACE = (PSB + MODE_64 + PSBEND + ip(PGE, 0x1000) + NOT_TAKEN + ip(TIP, 0x100d)
         + ip(FUP, 0x100d) + PGD_WITHOUT_IP)


def write_bundle(folder, **changes):
    (folder / "program").write_bytes(elf(rings.CODE, rings.CODE_AT))
    (folder / "43.trace").write_bytes(TRACE)
    document = {
        "type": "intel-pt",
        "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 79, "stepping": 1},
        "processes": [{
            "pid": 42, "triple": "x86_64-*-linux",
            "threads": [{"tid": 43, "iptTrace": "43.trace"}],
            "modules": [{"file": "program", "systemPath": "program", "loadAddress": rings.CODE_AT}],
        }], **changes}
    (folder / "trace.json").write_text(json.dumps(document))
    return folder / "trace.json"


def test_a_bundle_reads_as_what_was_executed(tmp_path):
    path = write_bundle(tmp_path)
    for given in (path, tmp_path):
        (h,) = tailtrace.open(given).threads
        assert (h.pid, h.tid, h.engine, h.gaps) == (42, 43, "pt", 0)
        assert [insn.address for insn in h] == rings.EXAMPLE_ADDRESSES
        assert h.at(2).taken is False and h.stop == 0x100d


def test_it_can_be_saved_as_a_bundle_of_ours(tmp_path):
    h = tailtrace.open(write_bundle(tmp_path)).threads[0]
    tailtrace.open(tmp_path).save(tmp_path / "ours.tt")
    again = tailtrace.open(tmp_path / "ours.tt").threads[0]
    assert [insn.address for insn in again] == [insn.address for insn in h]


def test_what_is_missing_is_said(tmp_path):
    path = write_bundle(tmp_path)
    (tmp_path / "43.trace").unlink()
    h = tailtrace.open(path).threads[0]
    with pytest.raises(tailtrace.Error) as caught:
        len(h)
    assert "43.trace" in caught.value.what and caught.value.why == "No such file or directory"
    path = write_bundle(tmp_path)
    (tmp_path / "program").unlink()
    h = tailtrace.open(path).threads[0]
    assert {gap.reason for gap in h if isinstance(gap, tailtrace.Gap)}


@pytest.mark.parametrize("text", ["{", "{}", '{"type": "intel-pt"}', '{"processes": 3}'])
def test_what_is_no_bundle_is_refused(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(tailtrace.BadInputError) as caught:
        tailtrace.open(tmp_path / "trace.json")
    assert caught.value.why


@pytest.mark.skipif(not REAL.is_dir(), reason="TAILTRACE_REAL_PT names no folder of real traces")
@pytest.mark.parametrize("bundle, expected", [
    ("intelpt-trace/trace.json", "lldb-intelpt-trace"), ("libxdc/foo/trace.json", "libxdc-foo"),
    ("libxdc/Unzip/trace.json", "libxdc-Unzip"), ("libxdc/mruby/trace.json", "libxdc-mruby")])
def test_real_traces_are_what_libipt_says(bundle, expected):
    with lzma.open(REAL / "expected" / f"{expected}.linear.ips.xz") as file:
        truth = numpy.frombuffer(file.read(), dtype="<u8")
    h = tailtrace.open(REAL / bundle).threads[0]
    columns = h[:].columns()
    mine = columns["address"][columns["gap"] == 0]
    assert len(mine) == len(truth) and (mine == truth).all()
