// The newest calls of a history, without looking at what is older.
//
// Segments are counted from the newest, so that nothing about them is different if more items are
// looked at, but for the oldest segment of the stretch, which may be cut, for callers that began
// before it, and for levels, which count from the outermost function in it.
//
// Threading: pure functions; one thread at a time for a symbolizer.
#pragma once

#include <functional>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

// The newest items, `count` of them if there are so many.
Range newest_items(const History& history, std::uint64_t count);

// The calls of as many of the newest items as it takes until `enough` holds for the number of their
// segments, or of all. Errors: as CallHistory::make.
Result<CallHistory> newest_calls(const History& history, Symbolizer& symbols,
                                 const std::function<bool(std::uint64_t segments)>& enough);

// Whether there is more in a history than some calls of it show.
bool holds_older(const History& history, const CallHistory& calls);

}  // namespace tailtrace
