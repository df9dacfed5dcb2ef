// The call stack of a past moment as LLDB's frames, where this LLDB can be given frames (22).
// tailtrace_lldb_frames.py beside the plugin makes them.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Before the program moves into the past. Without effect where LLDB cannot do it.
void show_history_frames(Session& session);
// Until they follow each stop again, they are those of where they were looked for.
void lead_history_frames(Session& session);
void follow_history_frames(Session& session);
void look_for_history_frames(Session& session);
// In the present again.
void show_own_frames(Session& session);

}  // namespace tailtrace::lldb_plugin
