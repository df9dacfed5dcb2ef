// Bundles that LLDB writes itself, of what it has traced or loaded.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// `trace save FOLDER`, and what LLDB says of it. Errors: kNegative with LLDB's own text; kSystem.
Result<std::string> save_by_lldb(Session& session, const std::string& folder);

}  // namespace tailtrace::lldb_plugin
