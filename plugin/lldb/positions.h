// Items of the history: their positions as users name them, and where in the source they are.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// FUNCTION+OFFSET  FILE:LINE, as far as they are known, of an item of the server's.
std::string place_of(const Json& item);

// Where the thread stands in the past, back from -1; 0 in the present, and where nobody knows.
std::int64_t standing(Session& session);

// A position, which counts from 1, or back from -1, as one that counts back. Errors: kUsage.
Result<std::int64_t> position_back(Session& session, const std::string& position);

}  // namespace tailtrace::lldb_plugin
