// What the plugin has LLDB's Python do: frames of the past, and commands whose words LLDB can
// complete. LLDB has no place for either in C++. The modules are the .py files beside the plugin.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// Whether this LLDB has Python, and asks it (22). Loads the modules at first.
bool has_scripts(Session& session);

// Calls FUNCTION(debugger), or FUNCTION(debugger, argument). False when it could not.
// REQUIRES: has_scripts().
bool run_script(Session& session, const std::string& function);
bool run_script(Session& session, const std::string& function, const Json& argument);

}  // namespace tailtrace::lldb_plugin
