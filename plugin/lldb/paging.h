// `-` to the command line: it answers one question at a time, and knows of none before.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>

#include "plugin/lldb/recording.h"
#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// The words to ask VERB with: `-` is what came before the range that was asked for last, with the
// same options unless others are named. Remembers what is asked for.
Words with_range(Session& session, const std::string& verb, Words words);

}  // namespace tailtrace::lldb_plugin
