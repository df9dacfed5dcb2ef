// Loops of a stretch of a history, for listings that show a thousand rounds as one line.
//
// A loop is what was executed between the first instruction of its first round and the last jump
// back to that instruction, in one call of its function, with all that was called in between. What
// came after the last jump back is not part of it: it shows how the loop was left. That is at the
// last instruction of the call before control was elsewhere than between the loop's first and last
// one. Of nested loops only the outermost is told.
//
// Threading: a pure function.
#pragma once

#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

struct Loop {
  Range items;
  std::uint64_t rounds = 0;  // jumps back
  Address head;              // where a round begins
  Address back;              // the jump that was taken back last
  Address last;              // of all that were taken back, the one with the highest address
  Address exit;              // where it was left; 0: it was not, or nobody knows
  Epoch epoch;               // of the code
};

// Loops of at least `min_rounds`, oldest first, apart from each other. A loop that has begun before
// the range is told from its first whole round in it. Takes time in proportion to the records of
// the range. REQUIRES: a range of the history.
std::vector<Loop> find_loops(const History& history, Range range, std::uint64_t min_rounds = 3);

}  // namespace tailtrace
