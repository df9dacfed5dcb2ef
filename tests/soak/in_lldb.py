"""What LLDB does in the soak test: as in_gdb.py. LLDB imports this file, and calls soak()."""

import json
import os

import inside
import lldb

STEPS = 25
TRACE = os.path.join(os.path.dirname(inside.RESULT), "trace.json")


def execute(debugger, command):
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, result)
    assert result.Succeeded(), f"{command}: {result.GetError()}"
    return result.GetOutput()


class Visitor:
    def __init__(self, debugger):
        self.debugger = debugger
        self.process = debugger.GetSelectedTarget().process
        self.visited = 0

    def thread(self):
        """LLDB may select another one, where several came to the end of what they do."""
        return self.process.GetThreadByID(self.visited)

    def pc(self):
        return self.thread().GetFrameAtIndex(0).GetPC()

    def go(self, direction):
        error = self.process.ContinueInDirection(direction)
        assert error.Success(), error
        state = self.process.GetState()
        assert state == lldb.eStateStopped, (
            f"{lldb.SBDebugger.StateAsCString(state)}, status {self.process.GetExitStatus()}, "
            f"{self.process.GetExitDescription()}")

    def visit(self):
        """One thread that comes: recorded, stepped, and gone back over."""
        self.go(lldb.eRunForward)
        self.visited = self.process.GetSelectedThread().GetThreadID()
        execute(self.debugger, "process trace start")
        wrong = self.look_at_history()
        execute(self.debugger, "process trace stop")
        return wrong, self.visited

    def look_at_history(self):
        """What is wrong, or nothing."""
        executed = []
        for _ in range(STEPS):
            executed.append(self.pc())
            self.thread().StepInstruction(False)
        stop = self.pc()
        if self.shown() != executed:
            return f"stepped {list(map(hex, executed))}, and shown {list(map(hex, self.shown()))}"
        self.go(lldb.eRunReverse)
        if self.pc() != executed[0]:
            return f"recorded from {executed[0]:#x}, and gone back to {self.pc():#x}"
        self.go(lldb.eRunForward)
        if self.pc() != stop:
            return f"stopped at {stop:#x}, and its end is {self.pc():#x}"
        asked = execute(self.debugger,
                        f"thread trace dump function-calls {self.thread().GetIndexID()}")
        return "" if "visit" in asked else "the calls do not name the function: " + asked

    def shown(self):
        execute(self.debugger, f"thread trace dump instructions {self.thread().GetIndexID()} "
                               f"--forwards --raw --json --count {2 * STEPS} --file {TRACE}")
        with open(TRACE, encoding="utf-8") as file:
            return [int(item["loadAddress"], 16) for item in json.load(file)
                    if "loadAddress" in item]


def soak(debugger):
    inside.soak(Visitor(debugger).visit)
