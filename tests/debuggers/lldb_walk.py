"""Inside LLDB: where a command stops again and again, as far as `main` goes, to a file."""

import lldb


def place(frame):
    line = frame.GetLineEntry()
    return f"{frame.GetFunctionName()} {line.GetFileSpec().GetFilename()}:{line.GetLine()}"


def is_in_main(thread):
    return any(frame.GetFunctionName() == "main" for frame in thread)


def walk(debugger, command, most, path):
    interpreter = debugger.GetCommandInterpreter()
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(most):
            interpreter.HandleCommand(command, lldb.SBCommandReturnObject())
            thread = debugger.GetSelectedTarget().process.GetSelectedThread()
            if not thread.IsValid() or not is_in_main(thread):
                return
            print(place(thread.GetSelectedFrame()), file=out)
