// The full-screen browser: a recording's threads at a terminal, until the user leaves.
//
// Threading: the main thread.
#pragma once

#include "plugin/cli/history_view.h"

namespace tailtrace {

// Whether the user is at a terminal that it can be shown on, and asked for nothing else.
bool can_browse(const HistoryOptions& options, const Invocation& invocation);

// The value is the exit status. A signal that ends this program does so when the terminal is as it
// was. Errors: as recorded_threads, pick_thread and open_recorded; kUsage when this is no terminal.
Result<int> browse(const HistoryOptions& options);

}  // namespace tailtrace
