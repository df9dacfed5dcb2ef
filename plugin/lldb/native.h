// Recording where the debug server is not ours: the processor records the process, by perf events
// that the plugin opens itself. Threads that come are recorded too. What was recorded is read when
// somebody asks, and the command line answers.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Records the process from here on, with the first hardware that works. Prints what is otherwise
// than asked. Errors: why none does. REQUIRES: there is a process.
Result<void> start_native(Session& session);
// Whether the process is, or was until it ended.
bool has_native(Session& session);
// What was recorded is dropped.
void stop_native(Session& session);
// Writes what all threads did last into a new folder, a bundle, and says so. Errors: as
// KeptRecording has them; kNegative when nothing was recorded. REQUIRES: has_native().
Result<std::string> save_native(Session& session, const std::string& path);

}  // namespace tailtrace::lldb_plugin
