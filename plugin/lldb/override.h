// `tailtrace override on`: LLDB's own `thread trace dump function-calls` and `thread trace export
// ctf` answer as ours do.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

Result<void> override_commands(Session& session, bool on);

}  // namespace tailtrace::lldb_plugin
