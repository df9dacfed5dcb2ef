// A debugger and a server of ours side by side at one terminal: what `tailtrace run` starts.
//
//   shell's process group     tailtrace (waits), gdb
//   a group of its own        the server, gdbserver
//   a group of its own        the program; has the terminal while it runs
//
// so that Ctrl-C reaches the program while it runs and GDB while it does not, as under GDB alone.
//
// Threading: one thread; forks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/server/serve.h"

namespace tailtrace {

// The debugger's argv once it is known where to connect (as `target remote` takes it) and which
// folder its scripts can be put in.
using DebuggerCommandLine = std::function<Result<std::vector<std::string>>(
    const std::string& target, const std::string& folder)>;

// Serves the program of `options` to the debugger until both are done. Returns the program's exit
// status, 128 + N if signal N ended it; the debugger's own if the program did not come to an end.
// What the server says is kept off the terminal. Errors: those of serve(); kSystem.
Result<int> run_debug_session(ServeOptions options, const DebuggerCommandLine& command_line);

}  // namespace tailtrace
