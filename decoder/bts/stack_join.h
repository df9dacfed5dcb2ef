// Last branch records come as stacks, one with each sample; stacks overlap, or leave holes. This
// says whether two of them fit together in exactly one way.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>

#include "decoder/bts/branch_list.h"

namespace tailtrace::bts {

// How many branches at the end of `newer` came after the last branch of `older`. `most_new` is the
// most that can have come: the sampling period in branches, and what the sample came late.
// Nothing when no number of new branches is possible, or more than one: a loop looks the same
// wherever it is cut, and a guess would count wrong.
std::optional<std::size_t> branches_added(std::span<const Branch> older,
                                          std::span<const Branch> newer, std::size_t most_new);

}  // namespace tailtrace::bts
