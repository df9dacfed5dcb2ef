// Last branch records come as stacks, one with each sample; stacks overlap, or leave holes. This
// says whether two of them fit together in exactly one way.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "decoder/bts/branch_list.h"

namespace tailtrace::bts {

struct Join {
  std::size_t added = 0;  // branches at the end of the newer stack that came after the older one
  bool exact = false;     // otherwise as few as are possible: a hole may come before them
};

// `most_added` is the most that can have come: the sampling period in branches, and what the sample
// came late. A loop looks the same wherever it is cut: where several numbers are possible none is
// believed, nor where even the largest possible stack has nothing in common with the older one.
Join join_stacks(std::span<const Branch> older, std::span<const Branch> newer,
                 std::size_t most_added);

}  // namespace tailtrace::bts
