// Ranges of numbered things as GDB's record commands have them, and as we print them.
//
//   (nothing)    the newest; after a range: the next that follow it
//   -            those before the last range
//   N            from N on
//   N,M          from N to M, both included
//   N,+K         K of them from N on
//   N,-K         K of them up to N
//   all          every one
//
// Where N is negative it counts back from the newest, -1, and so does an M behind it.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace {

// [first, last], both included, counted from 1; empty when last < first.
struct Range {
  std::uint64_t first = 1;
  std::uint64_t last = 0;

  std::uint64_t size() const { return last < first ? 0 : last - first + 1; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct RangeContext {
  std::uint64_t size = 0;         // how many there are
  std::uint64_t page = 10;        // how many are shown when nobody says
  std::optional<Range> previous;  // the range shown last
};

// What is asked for, cut to what there is. Errors: kUsage when it cannot be read, kNegative when
// nothing of it is there.
Result<Range> parse_range(std::string_view text, const RangeContext& context);

}  // namespace tailtrace
