// What a history shows, to be held against what the kernel saw executed.
//
// Threading: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "decoder/history/history.h"

namespace tailtrace {

struct Shown {
  std::vector<Address> executed;
  std::vector<std::size_t> breaks;  // a gap comes before the instruction of this number
  std::vector<GapReason> reasons;   // of each
};

Shown show(const ThreadSnapshot& snapshot);

// Every stretch without a gap is a stretch of the truth, one after the other.
void expect_stretches(const Shown& shown, const std::vector<Address>& truth);

}  // namespace tailtrace
