// LLDB's `thread step-out` and `finish` in the past. Behind them LLDB shows the value that the
// function returned, and takes registers that are not known for 0; so the way is gone without its
// help there. In the present, and for functions that are inlined, it is LLDB's own command.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Once for each debugger.
void mend_step_out(lldb::SBDebugger& debugger);

}  // namespace tailtrace::lldb_plugin
