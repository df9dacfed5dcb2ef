// Places in the history: when code at a location was executed.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// The newest `limit` executions of a LOCATION (function, FILE:LINE or address), the newest last.
// Errors: kUsage for a location that is none; kNegative when it was not executed.
Result<void> show_hits(Session& session, const std::string& location, std::uint64_t limit);

// FUNCTION+OFFSET  FILE:LINE, as far as they are known, of an item of the server's.
std::string place_of(const Json& item);

// A position, which counts from 1, or back from -1, as one that counts back. Errors: kUsage.
Result<std::int64_t> position_back(Session& session, const std::string& position);

}  // namespace tailtrace::lldb_plugin
