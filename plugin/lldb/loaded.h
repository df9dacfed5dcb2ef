// What LLDB has loaded with `trace load`, and from where. LLDB's interface does not say that: the
// command is watched from when the plugin is there on. The files have more than LLDB takes from
// them: the callers from before a history began, what is older than LLDB is given.
//
// Threading: on LLDB's thread.
#pragma once

#include <string>

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// From here on the debugger's `trace load` is heeded.
void heed_loads(lldb::SBDebugger debugger);

// Whether it is no process, but was loaded. To LLDB it is a process.
bool is_loaded(lldb::SBProcess process);
// The file that it was loaded from; empty: not known, or it was not loaded.
std::string loaded_from(Session& session);

}  // namespace tailtrace::lldb_plugin
