// Call listings: segments of functions as text for people or as JSON, newest last, indented by
// level:
//
//     [-4]  main          main.cc:16    [1,2]
//     [-3]    twice       main.cc:8-11  [3,14]
//     [-2]  -- gap: recording was off --
//     [-1]    ?? (libc.so.6)            [16,40]
//
// Folded, the calls of a loop are one line between the two parts of the call that it is in:
//
//     [-9]    x1234 loop main.cc:8-11 (last exit at :9)  [14..2481]
//
// The last column is the segment's items of the history, to be used with a listing of those.
//
// Threading: one thread at a time for a symbolizer.
#pragma once

#include <limits>

#include "decoder/history/calls/calls.h"
#include "decoder/history/listing.h"

namespace tailtrace {

constexpr std::int32_t kAllLevels = std::numeric_limits<std::int32_t>::max();

struct CallListingOptions {
  bool from_newest = true;  // positions of segments and items count back from -1
  bool indent = true;       // by level
  bool lines = true;        // source lines
  bool items = true;        // the range of items
  bool fold = false;        // what a loop calls in three rounds or more is one line
  bool times = false;       // the last known time before each, where one is
  // Levels, the lowest of the range included; gaps are of all.
  std::int32_t depth = kAllLevels;
};

// REQUIRES: calls of that history; a range of them.
void list_calls(const History& history, const CallHistory& calls, Symbolizer& symbols, Range range,
                const CallListingOptions& options, const LineSink& sink);

// One JSON object a line for each segment:
//   {"number":3,"position":-2,"function":"twice","module":"/bin/x","level":1,"first":3,"last":14,
//    "file":"main.cc","first_line":8,"last_line":11,"caller":1,"earlier":1,"later":7,
//    "tail_called":true,"begun_before":true,"time":12}
//   {"number":4,"position":-1,"gap":"not-recorded","text":"...","level":1,"first":15,"last":15}
// What is not known or does not hold is left out. Items and segments are numbers, as in "number".
void list_calls_json(const History& history, const CallHistory& calls, Symbolizer& symbols,
                     Range range, const LineSink& sink, JsonNumbers numbers = JsonNumbers::kBoth,
                     std::int32_t depth = kAllLevels);

std::string calls_text(const History& history, const CallHistory& calls, Symbolizer& symbols,
                       Range range, const CallListingOptions& options, std::size_t limit_bytes);

}  // namespace tailtrace
