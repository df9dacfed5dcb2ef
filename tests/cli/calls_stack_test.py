"""Calls against the stack itself: a debugger steps a program through each of its instructions, and
what calls have put on its stacks says in which it is.

Return addresses are on a stack as long as its pointer is not above them. A list of calls must have
the callers that they lead to at each segment, those aside that jumped on and so are on no stack.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import cases

MOST_STEPS = 9000
CALL_SIZES = range(2, 8)  # of the instructions

SCRIPT = """\
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
handle SIGUSR1 nostop noprint
break main
continue
record btrace bts
python
import json, struct
inferior = gdb.selected_inferior()
steps = []
def now():
    frame = gdb.newest_frame()
    sp = int(frame.read_register("rsp"))
    return frame.pc(), sp, *struct.unpack("Q", inferior.read_memory(sp, 8))
behind_main = int(gdb.newest_frame().older().read_register("rsp"))
while len(steps) < {most} and now()[1] != behind_main:
    steps.append(now())
    gdb.execute("stepi", to_string=True)
print("steps", json.dumps(steps))
print(gdb.execute("monitor tailtrace calls 1 2000", to_string=True))
for first in range(1, {most}, 500):
    print(gdb.execute(f"monitor tailtrace items {{first}} 500", to_string=True))
end
kill
"""


class Stacks:
    """What calls have put on the stacks of a program, by the values of its stack pointer."""

    # The pointers of one stack are not that far from each other.
    APART = 1 << 19

    def __init__(self):
        self.stacks = []

    def at(self, pointer):
        """The stack of a pointer: places and the return addresses in them, the outermost first."""
        for stack in self.stacks:
            if abs(stack[0] - pointer) < self.APART:
                return stack[1]
        self.stacks.append((pointer, []))
        return self.stacks[-1][1]

    def step(self, before, now):
        """Goes on by an instruction: (pc, stack pointer, what that points to) before and now."""
        (pc, pointer, _), (target, pushed, pointed) = before, now
        stack = self.at(pushed)
        while stack and stack[-1][0] < pushed:
            stack.pop()
        # A call to the next instruction is none.
        if pushed == pointer - 8 and pointed - pc in CALL_SIZES and target != pointed:
            stack.append((pushed, pointed))

    def returns(self, pointer):
        """The return addresses on a stack, the innermost first."""
        return [address for _, address in reversed(self.at(pointer))]


@unittest.skipUnless(shutil.which("gdb") and shutil.which("gdbserver"), "no gdb or no gdbserver")
class CallsAsTheStackHasThem(unittest.TestCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")

    def record(self, program):
        """The steps of a program, its items' addresses, and its calls by number."""
        path = os.path.join(cases.BINARY_DIR, "tests", "programs", program)
        server = f"{cases.TAILTRACE} serve --engine=qemu --handover=10000000 --ring=2097152"
        with tempfile.NamedTemporaryFile("w", suffix=".gdb") as file:
            file.write(SCRIPT.format(most=MOST_STEPS))
            file.flush()
            outcome = subprocess.run(
                ["gdb", "-nx", "-batch", "-ex", "set sysroot /", "-ex",
                 f"target remote | {server} - {path}", "-x", file.name, path],
                capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
                timeout=10 * cases.HANG_S, check=False)  # some thousand steps
        steps, items, calls = [], [], {}
        for line in outcome.stdout.splitlines():
            if line.startswith("steps "):
                steps = json.loads(line.removeprefix("steps "))
            elif line.startswith('{"number"'):
                one = json.loads(line)
                if "level" in one:
                    calls[one["number"]] = one
                else:
                    items.append(int(one["address"], 16))
        self.assertGreater(len(calls), 20, outcome.stdout[-2000:] + outcome.stderr[-2000:])
        return steps, items, calls

    def callers_on_the_stack(self, calls, number):
        """The segments that called, the innermost first."""
        while "caller" in calls[number]:
            jumped = calls[number].get("tail_called", False)
            number = calls[number]["caller"]
            if not jumped:
                yield calls[number]

    def assert_same_callers(self, program):
        steps, items, calls = self.record(program)
        stacks, returns = Stacks(), []
        for before, now in zip([steps[0], *steps], steps):
            stacks.step(before, now)
            # A string instruction that repeats itself is one item. One step makes a system call
            # together with the instruction behind it, and with the handler of a signal.
            ahead = items[len(returns):len(returns) + (1 if now[0] == before[0] else 50)]
            if now[0] in ahead:
                returns += [None] * ahead.index(now[0]) + [stacks.returns(now[1])]
        self.assertEqual(len(returns), len(items))
        self.assertLess(returns.count(None), 60)
        for number, call in calls.items():
            expected = returns[call["first"] - 1]
            if expected is None:
                continue
            with self.subTest(number=number, function=call.get("function")):
                callers = [items[caller["last"] - 1]
                           for caller in self.callers_on_the_stack(calls, number)]
                self.assertEqual(len(callers), len(expected))
                for at, behind in zip(callers, expected):
                    self.assertIn(behind - at, CALL_SIZES)

    def test_recursion_that_ends_with_a_tail_call(self):
        self.assert_same_callers("lazy_binding")

    def test_coroutines_other_stacks_longjmp_and_signals(self):
        self.assert_same_callers("coroutines")

    def test_stacks_that_take_turns(self):
        self.assert_same_callers("fibers")


if __name__ == "__main__":
    cases.main()
