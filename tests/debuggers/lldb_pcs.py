"""Inside LLDB: the program counters of `main`, single-stepped or from a trace, to a file.

The program stands at the first instruction of `main`; what counts ends where main returns to.
"""

import json

import lldb

SYSCALL = b"\x0f\x05"


def returns_to(thread):
    frame = thread.GetFrameAtIndex(0)
    error = lldb.SBError()
    address = thread.process.ReadPointerFromMemory(frame.GetSP(), error)
    assert error.Success(), error
    return address


def thread_at_main(debugger):
    return debugger.GetSelectedTarget().process.GetSelectedThread()


def by_steps(debugger, path):
    thread = thread_at_main(debugger)
    end = returns_to(thread)
    pcs = []
    behind_call = None  # where a system call goes on that was stepped last
    while thread.IsValid() and thread.GetFrameAtIndex(0).GetPC() != end:
        pc = thread.GetFrameAtIndex(0).GetPC()
        if behind_call not in (None, pc):
            pcs.append(behind_call)  # qemu's stub stops only behind the next instruction
        pcs.append(pc)
        code = thread.process.ReadMemory(pc, len(SYSCALL), lldb.SBError())
        behind_call = pc + len(SYSCALL) if code == SYSCALL else None
        thread.StepInstruction(False)
    write(path, pcs)


def by_trace(debugger, path):
    thread = thread_at_main(debugger)
    target = debugger.GetSelectedTarget()
    end = target.BreakpointCreateByAddress(returns_to(thread))
    assert end.IsValid()
    run(debugger, "process trace start --buffer-size 1048576")
    resumed = target.process.Continue()
    assert target.process.GetState() == lldb.eStateStopped, how_it_ended(target, end, resumed)
    run(debugger, f"thread trace dump instructions --forwards --raw --json --count 100000000 "
                  f"--file {path}.json")
    with open(path + ".json", encoding="utf-8") as file:
        items = json.load(file)
    errors = [item for item in items if "error" in item]
    assert not errors, errors
    write(path, [int(item["loadAddress"], 16) for item in items if "loadAddress" in item])


def how_it_ended(target, end, resumed):
    """All that tells a program that ran to its end from a server that is gone."""
    process = target.process
    return (f"{resumed}: {lldb.SBDebugger.StateAsCString(process.GetState())}, status "
            f"{process.GetExitStatus()}, {process.GetExitDescription()}; {end}, "
            f"{end.GetNumResolvedLocations()} resolved, {end.GetHitCount()} hits")


def run(debugger, command):
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, result)
    assert result.Succeeded(), result.GetError()


def write(path, pcs):
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{pc:#x}\n" for pc in pcs))
