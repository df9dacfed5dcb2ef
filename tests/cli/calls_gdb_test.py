"""Calls against stock GDB: the same segments, levels, instruction numbers and names. Where GDB
loses the stack the levels are not its own: calls_stack_test.py holds them against the stack.

GDB records a program with `record btrace` through `tailtrace serve`, then lists its calls by its
own decoder and by its own rules, and asks the server for ours.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cases

# The server answers with so many at a time.
PAGE = 2000
LINE = re.compile(r"(\d+)\t( *)(.*)\tinst (\d+),(\d+)")

SCRIPT = """\
set pagination off
set confirm off
set style enabled off
set debuginfod enabled off
set print asm-demangle on
handle SIGUSR1 nostop noprint
break main
continue
record btrace {format}
break {end}
continue
record function-call-history /ic 1,100000000
python
first = 1
while True:
  text = gdb.execute(f"monitor tailtrace calls {{first}} {page}", to_string=True)
  print(text, end="")
  first += {page}
  if '"number":' + str(first - 1) + ',' not in text:
    break
end
kill
"""


@unittest.skipUnless(shutil.which("gdb") and shutil.which("gdbserver"), "no gdb or no gdbserver")
class CallsAsGdbHasThem(unittest.TestCase):
    def lists(self, program, form, end="_exit"):
        """(number, level, name, first, last) of every segment: GDB's list, then ours."""
        path = os.path.join(cases.BINARY_DIR, "tests", "programs", program)
        server = f"{cases.TAILTRACE} serve --engine=qemu --handover=10000000 --ring=2097152"
        script = SCRIPT.format(format=form, end=end, page=PAGE)
        arguments = ["gdb", "-nx", "-batch", "-ex", "set sysroot /", "-ex",
                     f"target remote | {server} - {path}"]
        with tempfile.NamedTemporaryFile("w", suffix=".gdb") as file:
            file.write(script)
            file.flush()
            outcome = subprocess.run([*arguments, "-x", file.name, path], capture_output=True,
                                     stdin=subprocess.DEVNULL, text=True, errors="replace",
                                     timeout=cases.HANG_S, check=False)
        theirs, ours = [], []
        for line in outcome.stdout.splitlines():
            match = LINE.fullmatch(line)
            if match:
                number, indent, name, first, last = match.groups()
                theirs.append((int(number), len(indent) // 2, name, int(first), int(last)))
            elif line.startswith('{"number"'):
                call = json.loads(line)
                ours.append((call["number"], call["level"], call.get("function", "??"),
                             call["first"], call["last"]))
        self.assertGreater(len(theirs), 20, outcome.stdout[-2000:] + outcome.stderr[-2000:])
        # GDB counts the instruction where the thread stands to its last segment.
        number, level, name, first, last = theirs[-1]
        if ours and ours[-1][4] == last - 1:
            theirs[-1] = (number, level, name, first, last - 1)
        return theirs, ours

    def assert_same(self, program, form, names=True, levels=True, end="_exit"):
        theirs, ours = self.lists(program, form, end)

        def compared(call):
            number, level, name, first, last = call
            return number, level if levels else None, name if names else None, first, last

        for one, other in zip(theirs, ours):
            self.assertEqual(compared(one), compared(other))
        self.assertEqual(len(theirs), len(ours))
        return ours

    def test_recursion(self):
        self.assert_same("recursion", "pt")

    def test_recursion_as_blocks(self):
        self.assert_same("recursion", "bts")

    def test_tail_calls(self):
        self.assert_same("tail_calls", "pt")

    # GDB takes the function to return to for the innermost of that name, which had jumped on.
    def test_lazy_binding(self):
        self.assert_same("lazy_binding", "pt", levels=False)

    def test_string_instructions(self):
        self.assert_same("string_instructions", "pt")

    # GDB makes names of C++ functions out of their types.
    def test_cxx(self):
        self.assert_same("symbols_sample", "pt", names=False)

    # GDB has all calls of a recursive function clean up in the innermost one.
    def test_exceptions(self):
        ours = self.assert_same("exceptions", "pt", names=False, levels=False,
                                end="__cxa_begin_catch")
        levels = [call[1] for call in ours if call[2].endswith("::~Guard()")]
        self.assertEqual(levels, list(range(levels[0], levels[0] - 7, -1)))

    def test_stacks_that_take_turns(self):
        self.assert_same("fibers", "pt", levels=False)

    def test_coroutines_other_stacks_longjmp_and_signals(self):
        ours = self.assert_same("coroutines", "pt", names=False, levels=False)
        names = [call[2] for call in ours]
        levels = [call[1] for call in ours]
        handler = names.index("(anonymous namespace)::handle(int)")
        resumed = handler + 2
        self.assertEqual(names[resumed], names[handler - 1])
        self.assertEqual([levels[n] - levels[handler] for n in (handler - 1, handler + 1, resumed)],
                         [-1, 0, -1])


if __name__ == "__main__":
    cases.main()
