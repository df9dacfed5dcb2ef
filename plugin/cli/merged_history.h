// `tailtrace history --merged`: what all threads executed last, in the order of time.
//
// Threading: one thread at a time.
#pragma once

#include "plugin/cli/history_view.h"

namespace tailtrace {

// The newest items of all threads together, as many as the range says, else `page`. Errors: as
// open_view; kUsage for a range that does not end with the newest.
Result<int> show_merged(const HistoryOptions& options, const ListingOptions& listing,
                        std::uint64_t page, const Invocation& invocation);

}  // namespace tailtrace
