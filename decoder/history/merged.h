// Merged threads: what several threads executed as stretches in the order of time.
//
// The items of a thread that were executed behind the same known time are a stretch. What happened
// within it is in order; where it lies between stretches of other threads is known only as far as
// times are: it began after its own time, and had ended before its thread's next time but one, or
// before its last record's where that is exact. So stretches of different threads may overlap, and
// then nobody knows what came first.
//
// Threading: pure functions; histories may be shared.
#pragma once

#include <span>
#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

struct TimedStretch {
  std::size_t thread = 0;   // its index
  Range items;              // numbers of its history
  std::uint64_t begin = 0;  // executed not before this, in the clock's units; 0: not known
  std::uint64_t end = 0;    // had ended then; 0: not known
  // An older one, of another thread, may have been going on still.
  bool overlaps = false;

  friend bool operator==(const TimedStretch&, const TimedStretch&) = default;
};

// The newest stretches of all threads that have `items` items together, the newest last: in the
// order of `begin`, those of one time in the order of threads. The oldest is cut. REQUIRES: times
// of all threads are of one clock.
std::vector<TimedStretch> newest_stretches(std::span<const History* const> threads,
                                           std::uint64_t items);

}  // namespace tailtrace
