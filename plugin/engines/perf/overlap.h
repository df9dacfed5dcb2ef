// Two stretches of one history that were read at different times: how much they have in common.
//
// Threading: pure functions.
#pragma once

#include <span>

#include "decoder/record/branch_record.h"

namespace tailtrace::perf {

// The most records at the end of `older` that are the first of `newer`. Time is proportional to the
// length of the shorter.
std::size_t longest_overlap(std::span<const BranchRecord> older,
                            std::span<const BranchRecord> newer);

}  // namespace tailtrace::perf
