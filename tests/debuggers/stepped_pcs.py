"""The program counters of `main` as a debugger's server steps through it, without a debugger."""

import pathlib
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import rsp  # noqa: E402

AT_NULL, AT_ENTRY = 0, 9
PC_SIZE_BYTES = 8
# In the answer to `g`: rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, rip.
SP, PC = 7, 16
SYSCALL = b"\x0f\x05"


def addresses(program):
    """Of its entry and of main, as its file has them."""
    headers = subprocess.run(["readelf", "-W", "-h", "-s", program], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    entry = re.search(r"Entry point address:\s+(\w+)", headers)[1]
    main = re.search(r": (\w+) .* main\n", headers)[1]
    return int(entry, 16), int(main, 16)


class Stepper:
    """A program that a server holds, of one thread."""

    def __init__(self, port):
        self.server = rsp.Debugger(port)
        self.server.greet()
        self.thread = re.search("thread:([^;]+)", self.server.ask("?"))[1]

    def auxiliary(self, wanted):
        """The value of one entry of the auxiliary vector."""
        answer = self.server.ask("qXfer:auxv:read::0,ffb")
        vector = rsp.unescape(answer[1:].encode("latin-1"))
        return dict(struct.iter_unpack("<QQ", vector[:len(vector) // 16 * 16]))[wanted]

    def registers(self):
        registers = bytes.fromhex(self.server.ask("g")[:(PC + 1) * PC_SIZE_BYTES * 2])
        return struct.unpack(f"<{PC + 1}Q", registers)

    def memory(self, address, size):
        return bytes.fromhex(self.server.ask(f"m{address:x},{size:x}"))

    def step(self):
        self.server.ask(f"vCont;s:{self.thread}")

    def run_to(self, address):
        self.server.ask(f"Z0,{address:x},1")
        self.server.ask("vCont;c")
        self.server.ask(f"z0,{address:x},1")


def pcs(program, port):
    """What main executes, from its first instruction to its return."""
    stepper = Stepper(int(port))
    entry, main = addresses(program)
    stepper.run_to(stepper.auxiliary(AT_ENTRY) - entry + main)
    end, = struct.unpack("<Q", stepper.memory(stepper.registers()[SP], PC_SIZE_BYTES))
    code = {}
    found = []
    behind_call = None  # where a system call goes on that was stepped last
    while (pc := stepper.registers()[PC]) != end:
        if behind_call not in (None, pc):
            found.append(behind_call)  # qemu's stub stops only behind the next instruction
        if found[-1:] != [pc]:  # each round of a string instruction is a step
            found.append(pc)
        if pc not in code:
            code[pc] = stepper.memory(pc, len(SYSCALL))
        behind_call = pc + len(SYSCALL) if code[pc] == SYSCALL else None
        stepper.step()
    stepper.server.send("k")
    return found
