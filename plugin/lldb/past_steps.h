// LLDB's `thread step-out`, `step-over` and `step-in` (`finish`, `next`, `step`) in the past. LLDB
// knows no stack pointer there: behind `finish` it shows the value that the function returned, and
// takes registers that are not known for 0; the others take what is called for what calls it, or
// stop on the way to a library's function. So the way is gone without LLDB's help there. In the
// present, out of functions that are inlined, and where they are given words, they are LLDB's own.
// `process continue --reverse` goes back in the thread that is selected.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Once for each debugger.
void mend_steps(lldb::SBDebugger& debugger);

}  // namespace tailtrace::lldb_plugin
