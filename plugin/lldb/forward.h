// Stepping forward in the history by line, as LLDB does it in the present. A function that the
// compiler put into another one counts as called from there.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// To the next line of the function that is shown, or to where it has returned; where it has no
// lines, to its next instruction. Prints where the thread stands then. False: LLDB can do that.
Result<bool> next_line(Session& session);
// The same, but into a function with source that is called before. False: as above.
Result<bool> step_into(Session& session);

}  // namespace tailtrace::lldb_plugin
