// What a recording holds, as `tailtrace info` prints it, for other verbs too.
//
// Threading: the main thread.
#pragma once

#include "plugin/cli/history_view.h"

namespace tailtrace {

// Prints every thread that is asked for. The value is the exit status. Errors: as recorded_threads
// and open_recorded; kGaps with --strict.
Result<int> show_info(const HistoryOptions& options, const Invocation& invocation);

// Adds PATH, --thread, --strict and the output options.
void add_info_options(CLI::App& app, HistoryOptions& options);

}  // namespace tailtrace
