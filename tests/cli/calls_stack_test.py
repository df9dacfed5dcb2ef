"""Calls against the stack itself: a debugger steps a program through each of its instructions, and
what calls have put on its stacks says how deep it is in them.

Return addresses are on a stack as long as its pointer is not above them. A list of calls must have
as many callers at each segment, those aside that jumped on and so are on no stack any more.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import cases

MOST_STEPS = 9000

SCRIPT = """\
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
handle SIGUSR1 nostop noprint
break main
continue
record btrace bts
tbreak {end}
python
import json, struct
inferior = gdb.selected_inferior()
ended = []
gdb.events.stop.connect(lambda event: ended.append(isinstance(event, gdb.BreakpointEvent)))
steps = []
def now():
    frame = gdb.newest_frame()
    sp = int(frame.read_register("rsp"))
    return frame.pc(), sp, *struct.unpack("Q", inferior.read_memory(sp, 8))
behind_main = int(gdb.newest_frame().older().read_register("rsp"))
while len(steps) < {most} and not any(ended) and now()[1] != behind_main:
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
        """Where return addresses are on the stack of a pointer, the outermost first."""
        for stack in self.stacks:
            if abs(stack[0] - pointer) < self.APART:
                return stack[1]
        self.stacks.append((pointer, []))
        return self.stacks[-1][1]

    def step(self, before, now):
        """Goes on by an instruction: (pc, stack pointer, what that points to) before and now."""
        (pc, pointer, _), (target, pushed, pointed) = before, now
        places = self.at(pushed)
        while places and places[-1] < pushed:
            places.pop()
        # No call instruction is longer, and one to the next is none.
        if pushed == pointer - 8 and pc + 2 <= pointed <= pc + 7 and target != pointed:
            places.append(pushed)


@unittest.skipUnless(shutil.which("gdb") and shutil.which("gdbserver"), "no gdb or no gdbserver")
class CallsAsTheStackHasThem(unittest.TestCase):
    def setUp(self):
        cases.needs_engine(self, "qemu")

    def record(self, program, end):
        """The steps of a program, its items' addresses, and its calls by number."""
        path = os.path.join(cases.BINARY_DIR, "tests", "programs", program)
        server = f"{cases.TAILTRACE} serve --engine=qemu --handover=10000000 --ring=2097152"
        with tempfile.NamedTemporaryFile("w", suffix=".gdb") as file:
            file.write(SCRIPT.format(end=end, most=MOST_STEPS))
            file.flush()
            outcome = subprocess.run(
                ["gdb", "-nx", "-batch", "-ex", "set sysroot /", "-ex",
                 f"target remote | {server} - {path}", "-x", file.name, path],
                capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
                timeout=cases.HANG_S, check=False)
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
        count = 0
        while "caller" in calls[number]:
            count += not calls[number].get("tail_called", False)
            number = calls[number]["caller"]
        return count

    def assert_as_deep(self, program, end="_exit"):
        steps, items, calls = self.record(program, end)
        stacks, depths = Stacks(), []
        for before, now in zip([steps[0], *steps], steps):
            stacks.step(before, now)
            # A string instruction that repeats itself is one item. One step makes a system call
            # together with the instruction behind it, and with the handler of a signal.
            ahead = items[len(depths):len(depths) + (1 if now[0] == before[0] else 50)]
            if now[0] in ahead:
                depths += [None] * ahead.index(now[0]) + [len(stacks.at(now[1]))]
        self.assertEqual(len(depths), len(items))
        self.assertLess(depths.count(None), 60)
        for number, call in calls.items():
            depth = depths[call["first"] - 1]
            if depth is not None:
                with self.subTest(number=number, function=call.get("function")):
                    self.assertEqual(self.callers_on_the_stack(calls, number), depth)

    def test_recursion_that_ends_with_a_tail_call(self):
        self.assert_as_deep("lazy_binding")

    def test_coroutines_other_stacks_longjmp_and_signals(self):
        self.assert_as_deep("coroutines")

    def test_exceptions(self):
        self.assert_as_deep("exceptions", end="__cxa_begin_catch")


if __name__ == "__main__":
    cases.main()
