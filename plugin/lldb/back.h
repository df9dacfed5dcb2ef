// Stepping in the history: backwards by instruction, by line, over and out of calls; to a position;
// forward out of functions.
// The server finds the way; LLDB believes that it lets the program run, and so sees where it is.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Each prints where the thread stands then. Errors: kNegative at the beginning of the history, when
// there is none, or when it stands there already.
Result<void> back_instruction(Session& session);
// To the beginning of the line; where it stands there, of the line before. `into`: functions with
// source that were called from it are entered, else gone over. Lines begin where they do for LLDB's
// own `next`: also with code that begins no statement, which GDB does not stop at.
Result<void> back_line(Session& session, bool into);
Result<void> back_out(Session& session);
// To the breakpoint before, else to where the history begins.
Result<void> back_to_breakpoint(Session& session);
// Forward, to where so many functions have returned, the innermost first.
Result<void> leave(Session& session, std::uint64_t functions);
// Back from -1, the newest, or to the present.
constexpr std::int64_t kPresent = 0;
Result<void> go_to(Session& session, std::int64_t position);

}  // namespace tailtrace::lldb_plugin
