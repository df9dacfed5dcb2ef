"""Watchpoints under qemu, which has none for programs: GDB stops where it does with those of the
processor, and the history is what it is without them.

Where the processor's own are not to be had, what needs them for comparison is skipped.
"""

import os
import re
import shutil
import subprocess
import unittest

import cases

PROGRAM = os.path.join(cases.BINARY_DIR, "tests", "programs", "watched")
IN_STEP = os.path.join(cases.BINARY_DIR, "tests", "programs", "in_step")
# What is freed is overwritten at once: mallopt(3).
OVERWRITES = dict(os.environ, MALLOC_PERTURB_="165")
QUIET = ["-nx", "-batch", "-ex", "set width 0", "-ex", "set style enabled off"]
# At each stop: the instruction that is next, and the value.
TELL = ["-ex", "python gdb.breakpoints()[-1].commands = "
        "'silent\\nx/i $pc\\noutput all.value\\necho \\\\n\\ncontinue'"]
TO_END = ["-ex", "continue"] * 3
HAS_PROCESSOR = "the processor's own watchpoints are not to be had here"


def run(arguments, env=None):
    outcome = subprocess.run(arguments, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                             timeout=cases.HANG_S, check=False, env=env)
    return outcome.stdout + outcome.stderr


def under_qemu(*commands, program=(PROGRAM,), env=None):
    return run([cases.TAILTRACE, "run", "--engine=qemu", *QUIET, *commands, "--", *program], env)


def by_processor(*commands):
    start = ["-ex", "set startup-with-shell off", "-ex", "break main", "-ex", "run"]
    text = run(["gdb", *QUIET, *start, *commands, PROGRAM])
    if "Could not insert hardware" in text or not re.search("Hardware.*watchpoint 2", text):
        raise unittest.SkipTest(HAS_PROCESSOR)
    return text


def stops(text):
    """(instruction, value) of each, without addresses."""
    found = re.findall(r"^=> 0x\w+ (<.*>:\t.*)\n(-?\d+)$", text, re.MULTILINE)
    address = r"0x\w+(?= <|\(%rip\))|# 0x\w+"
    return [(re.sub(address, "", insn), int(value)) for insn, value in found]


@unittest.skipUnless(shutil.which("gdb") and shutil.which("qemu-x86_64"), "no gdb or no qemu")
class Watchpoints(unittest.TestCase):
    def assert_as_by_processor(self, watch):
        commands = ["-ex", watch, *TELL, *TO_END]
        theirs = stops(by_processor(*commands))
        text = under_qemu(*commands)
        self.assertEqual(stops(text), theirs, text)
        return theirs

    def test_stores_stop_where_those_of_the_processor_do(self):
        self.assertGreater(len(self.assert_as_by_processor("watch all.value")), 20)

    def test_accesses_stop_where_those_of_the_processor_do(self):
        changes = stops(by_processor("-ex", "watch all.value", *TELL, *TO_END))
        accesses = self.assert_as_by_processor("awatch all.value")
        self.assertGreater(len(accesses), len(changes))

    def test_loads_stop_where_those_of_the_processor_do(self):
        self.assertGreater(len(self.assert_as_by_processor("rwatch all.value")), 1)

    def test_each_store_of_two_threads_is_told(self):
        text = under_qemu("-ex", "watch all.value", *TELL, *TO_END, program=(PROGRAM, "threads"))
        self.assertEqual([value for _, value in stops(text)], list(range(1, 11)), text)
        self.assertIn("exited normally", text)

    def test_history_is_what_it_is_without(self):
        to_exit = ["-ex", "tbreak _exit", "-ex", "continue"]
        recorded = re.compile(r"Recorded \d+ instructions in \d+ functions \(0 gaps\)")
        without = recorded.search(under_qemu(*to_exit, "-ex", "info record"))
        text = under_qemu("-ex", "watch all.value", *TELL, *to_exit, "-ex", "info record")
        self.assertGreater(len(stops(text)), 20)
        self.assertEqual(recorded.search(text)[0], without[0], text)

    def test_newest_instruction_is_the_store(self):
        text = under_qemu("-ex", "watch all.value", "-ex", "continue", "-ex", "continue", "-ex",
                          "record instruction-history")
        newest = text.strip().splitlines()[-1]
        self.assertRegex(newest, r"lock addq? +\$0x5")

    def test_more_than_there_is_room_for_is_refused_and_less_goes_on(self):
        watches = [word for offset in range(17)
                   for word in ("-ex", f"watch *(char*)(&all.before[{offset}])")]
        text = under_qemu(*watches, "-ex", "continue", "-ex", "delete 18", "-ex", "continue")
        self.assertIn("Could not insert hardware watchpoint", text)
        self.assertIn("Old value", text)

    def test_threads_go_on_when_nothing_is_watched_any_more(self):
        commands = ["-ex", "watch *(int*)&barrier", "-ex", "break together", *TO_END, "-ex",
                    "delete", "-ex", "continue"]
        for _ in range(3):
            text = under_qemu(*commands, program=(IN_STEP,), env=OVERWRITES)
            self.assertIn("exited normally", text)


if __name__ == "__main__":
    cases.main()
