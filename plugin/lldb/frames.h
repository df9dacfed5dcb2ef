// History as frames: where a thread stands in its past, LLDB shows the calls that were open there
// as its call stack, by a frame provider in Python (tailtrace_frames.py). LLDB has such since
// version 22; earlier ones show the innermost frame only.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Shows the selected thread's call stack as it was where it stands; in the present, its own.
void show_frames(Session& session);
// Its own again. Before any thread moves.
void remove_frames(Session& session);

}  // namespace tailtrace::lldb_plugin
