"""Trace bundles of processors, as LLDB saves them, of threads that only this module executes.

Each thread runs a loop of its own, so that an address says whose it is:

    +0  nop    +1  dec %rax    +4  jnz +0    +6  jmp +0

The module writes what a processor would: packets, and the kernel's records of context switches. It
keeps what was executed, in pieces with a time each, and says which of them a reader can know to be
a thread's: those of the blocks (from a PSB to the next) that begin while it was executed.
"""

import json
import pathlib
import struct

CODE = bytes.fromhex("9048ffc875faebf8")
LOOP_AT, LOOPS_APART = 0x400000, 0x1000
PSB, PSBEND, MODE_64 = b"\x02\x82" * 8, b"\x02\x23", b"\x99\x01"
PGD, PGE, FUP = 0x01, 0x11, 0x1d
SWITCH_CPU_WIDE, OUT = 15, 1 << 13
PID = 4000
# One tick is one nanosecond, and the clock began before the epoch.
CLOCK = {"timeMult": 1 << 20, "timeShift": 20, "timeZero": str(2**64 - 5)}


def ip(opcode, address):
    """A packet with a whole address."""
    return bytes([opcode | 0xc0]) + struct.pack("<Q", address)


def tnt(bits):
    """Outcomes, six a packet."""
    out = b""
    for at in range(0, len(bits), 6):
        byte = 1
        for taken in bits[at:at + 6]:
            byte = byte << 1 | taken
        out += bytes([byte << 1])
    return out


def tsc(time):
    return b"\x19" + struct.pack("<Q", time)[:7]


def loop_of(tid):
    return LOOP_AT + tid * LOOPS_APART


def executed(tid, bits):
    at = loop_of(tid)
    return [at + offset for taken in bits for offset in ((0, 1, 4) if taken else (0, 1, 4, 6))]


class Cpu:
    """A processor's trace, written from the oldest byte on."""

    def __init__(self, number):
        self.number = number
        self.trace = b""
        self.switches = b""
        self.pieces = []      # (time, addresses, whether a PSB is before them), in order
        self.executions = []  # (begin, end, tid), as far as the switches tell

    def run(self, tid, begin, end, pieces, told_in=True, told_out=True):
        """Executes a thread. A piece is (time, what is before it, outcomes): "psb", tracing goes on
        over one; "sync", there is one before tracing goes on; "", tracing goes on."""
        if told_in:
            self.switch(tid, begin, 0)
        at, on = loop_of(tid), False
        for time, before, bits in pieces:
            assert bits[-1], "the loop is at its first instruction then"
            if before != "psb" and on:
                self.trace += ip(FUP, at) + ip(PGD, at)
            if before:
                self.trace += PSB + tsc(time) + MODE_64
                self.trace += (ip(FUP, at) if before == "psb" else b"") + PSBEND
            if before != "psb":
                self.trace += tsc(time) + MODE_64 + ip(PGE, at)
            self.trace += tnt(bits)
            self.pieces.append((time, executed(tid, bits), bool(before)))
            on = True
        if on:
            self.trace += ip(FUP, at) + ip(PGD, at)
        if told_out:
            self.switch(tid, end, OUT)
        self.executions.append((begin, end, tid))

    def switch(self, tid, time, misc):
        nanoseconds = (time + int(CLOCK["timeZero"])) % 2**64
        # A record of another kind is in the way.
        self.switches += struct.pack("<IHHQ", 3, 0, 16, 0)
        self.switches += struct.pack("<IHHIIIIQ", SWITCH_CPU_WIDE, misc, 32, 0, 0, PID, tid,
                                     nanoseconds)

    def blocks(self):
        """(time, pieces) from each PSB to the next."""
        found = []
        for time, addresses, begins in self.pieces:
            if begins:
                found.append((time, []))
            if found:
                found[-1][1].append((time, addresses))
        return found

    def known(self):
        """(time, tid, addresses) of every block that is somebody's, and how many are nobody's."""
        owned, lost = [], 0
        for time, pieces in self.blocks():
            owner = [e for e in self.executions if e[0] < time < e[1]]
            if not owner:
                lost += 1
                continue
            _, end, tid = owner[0]
            addresses = []
            for piece_time, piece in pieces:
                if piece_time > end:
                    break
                addresses += piece
            owned.append((time, tid, addresses))
        return owned, lost


def elf(code, address):
    """The smallest file that holds code: a header, one segment, and the code."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, address, address, len(code), len(code), 0x1000)
    return (head + segment).ljust(0x1000, b"\0") + code


def code_of(tids):
    size = (max(tids) + 1) * LOOPS_APART
    code = bytearray(size)
    for tid in tids:
        code[tid * LOOPS_APART:tid * LOOPS_APART + len(CODE)] = CODE
    return bytes(code)


def write(folder, cpus, tids, named=None, kernel=None):
    """Writes the bundle; its description has the threads that are `named`, all if none are."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program").write_bytes(elf(code_of(tids), LOOP_AT))
    for cpu in cpus:
        (folder / f"{cpu.number}.trace").write_bytes(cpu.trace)
        (folder / f"{cpu.number}.switches").write_bytes(cpu.switches)
    document = {
        "type": "intel-pt",
        "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
        "cpus": [{"id": cpu.number, "iptTrace": f"{cpu.number}.trace",
                  "contextSwitchTrace": f"{cpu.number}.switches"} for cpu in cpus],
        "tscPerfZeroConversion": CLOCK,
    }
    if kernel is not None:
        document["kernel"] = {"file": "program", **kernel}
    else:
        document["processes"] = [{
            "pid": PID, "triple": "x86_64-*-linux",
            "threads": [{"tid": tid, "iptTrace": None} for tid in named or tids],
            "modules": [{"file": "program", "systemPath": "/program", "loadAddress": hex(LOOP_AT)}],
        }]
    (folder / "trace.json").write_text(json.dumps(document, indent=1))
    return folder


def known_of(cpus):
    """What is known of each thread, in order of time, and how many blocks are nobody's."""
    threads, lost = {}, 0
    for cpu in cpus:
        owned, unowned = cpu.known()
        lost += unowned
        for time, tid, addresses in owned:
            threads.setdefault(tid, []).append((time, addresses))
    return {tid: [a for _, addresses in sorted(found) for a in addresses]
            for tid, found in threads.items()}, lost
