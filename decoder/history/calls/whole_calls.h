// Calls as wholes: each from the first of its segments (calls.h) to the last, with all that it
// called in between.
//
// Threading: as CallHistory; one thread at a time for a symbolizer.
#pragma once

#include <span>
#include <vector>

#include "decoder/history/calls/calls.h"
#include "decoder/history/listing.h"
#include "decoder/history/location_matcher.h"

namespace tailtrace {

struct WholeCall {
  std::uint64_t first = 0;  // the number of its first segment
  Range items;              // of the history
  std::uint64_t times = 1;  // equal ones in a row that it stands for, all their items with it
};

struct WholeCalls {
  std::vector<WholeCall> newest;  // oldest first
  std::uint64_t count = 0;        // of all
};

// Of the functions that the matcher is of; as many of the newest as `limit` says. A call that began
// before the calls do is from where they begin. When folded, those that one call made in a row are
// one. REQUIRES: functions.is_of_functions().
WholeCalls calls_of(const CallHistory& calls, LocationMatcher& functions, std::uint64_t limit,
                    bool fold = false);

struct CallTree {
  std::vector<WholeCall> calls;  // in the order in which they began
  bool is_cut = false;           // the calls that were looked at hold no more, but the history does
};

// Those of all functions that ended last, or have not ended; `limit` of them if there are so many.
// Equal ones that one call made in a row, and that called nothing, are one.
// REQUIRES: calls of the newest items of that history.
CallTree newest_whole_calls(const History& history, const CallHistory& calls, std::uint64_t limit);

// A line for each: its items, its function, and who called it. REQUIRES: calls of that history.
void list_whole_calls(const History& history, const CallHistory& calls, Symbolizer& symbols,
                      std::span<const WholeCall> whole, bool from_newest, const LineSink& sink);

// One JSON object a line for each:
//   {"number":3,"position":-2,"function":"twice","module":"/bin/x","level":1,"first":3,"last":14,
//    "caller":{"address":"0x401136","function":"main","file":"main.cc","line":8},
//    "tail_called":true,"begun_before":true,"times":20}
// What is not known or does not hold is left out.
void list_whole_calls_json(const History& history, const CallHistory& calls, Symbolizer& symbols,
                           std::span<const WholeCall> whole, const LineSink& sink,
                           JsonNumbers numbers = JsonNumbers::kBoth);

}  // namespace tailtrace
