// The source lines that led here; a loop is one row, as in the list of instructions.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

constexpr std::uint64_t kSourcePage = 10;

// The newest `count` rows, the newest last, with their text, that led to where the thread stands in
// the past, or to the present (0). Errors: as the server has them.
Result<void> show_source(Session& session, std::uint64_t count, std::int64_t standing);
// As many older ones, behind which the ones that were shown last came.
Result<void> show_older_source(Session& session);

}  // namespace tailtrace::lldb_plugin
