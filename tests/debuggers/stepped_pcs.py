"""The program counters of `main` as single-stepping finds them, without a debugger: by a debugger's
server for the processor, by qemu's own log of what it is about to execute for qemu.
"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import rsp  # noqa: E402

AT_NULL, AT_ENTRY = 0, 9
PC_SIZE_BYTES = 8
PAGE_BYTES = 4096
# In the answer to `g`: rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 to r15, rip.
SP, PC = 7, 16
STOPPED_AT = re.compile(f";{PC:x}:([0-9a-f]{{{2 * PC_SIZE_BYTES}}});")  # within an answer to a step
LONGEST_CALL_BYTES = 7
LOGGED = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/", re.M)


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
        """Where the program stands then."""
        answer = self.server.ask(f"vCont;s:{self.thread}")
        return struct.unpack("<Q", bytes.fromhex(STOPPED_AT.search(answer)[1]))[0]

    def run_to(self, address):
        self.server.ask(f"Z0,{address:x},1")
        self.server.ask("vCont;c")
        self.server.ask(f"z0,{address:x},1")


def once_each(pcs):
    """Each round of a string instruction is a step."""
    return [pc for number, pc in enumerate(pcs) if not number or pc != pcs[number - 1]]


def under_gdbserver(program, port):
    """What main executes, from its first instruction to its return; our server is at the port."""
    stepper = Stepper(int(port))
    entry, main = addresses(program)
    pc = stepper.auxiliary(AT_ENTRY) - entry + main
    stepper.run_to(pc)
    end, = struct.unpack("<Q", stepper.memory(stepper.registers()[SP], PC_SIZE_BYTES))
    found = []
    while pc != end:
        found.append(pc)
        pc = stepper.step()
    stepper.server.send("k")
    return once_each(found)


def under_qemu(program):
    """The same of the program under qemu-user, which translates each instruction alone then."""
    with tempfile.NamedTemporaryFile(prefix="tailtrace-steps-") as log:
        subprocess.run(["qemu-x86_64", "-singlestep", "-d", "exec,nochain", "-D", log.name,
                        program], stdout=subprocess.DEVNULL, check=False)
        steps = [int(pc, 16) for pc in LOGGED.findall(log.read().decode())]
    entry, main = addresses(program)
    executed = set(steps)
    # qemu maps the program below its libraries, of which one may have looked like it.
    start = steps.index(min(pc for pc in executed
                            if (pc - main) % PAGE_BYTES == 0 and pc - main + entry in executed))
    call = steps[start - 1]
    end = next(number for number, pc in enumerate(steps)
               if number > start and 0 < pc - call <= LONGEST_CALL_BYTES)
    return once_each(steps[start:end])
