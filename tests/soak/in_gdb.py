"""What GDB does in the soak test: record, step, go back, ask, and let threads come and go. GDB
reads this file."""

import gdb
import inside

STEPS = 25


def pc():
    return int(gdb.selected_frame().pc())


def execute(command):
    return gdb.execute(command, to_string=True)


def visit():
    """One thread that comes: recorded, stepped, and gone back over."""
    execute("continue")
    execute("record btrace bts")
    wrong = look_at_history()
    execute("record stop")
    return wrong, gdb.selected_thread().ptid[1]


def look_at_history():
    """What is wrong, or nothing."""
    executed = []
    for _ in range(STEPS):
        executed.append(pc())
        execute("stepi")
    stop = pc()
    back = []
    for _ in range(STEPS):
        execute("reverse-stepi")
        back.append(pc())
    if back != executed[::-1]:
        return f"stepped {list(map(hex, executed))}, and back {list(map(hex, back))}"
    execute("record goto end")
    if pc() != stop:
        return f"stopped at {stop:#x}, and its end is {pc():#x}"
    asked = execute("record function-call-history")
    return "" if "visit" in asked else "the calls do not name the function: " + asked


for setting in ("set pagination off", "set confirm off",
                "set scheduler-locking step",  # others come and go between the stops only
                "break visit"):
    execute(setting)
inside.soak(visit)
execute("kill")
