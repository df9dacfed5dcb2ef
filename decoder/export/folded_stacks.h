// Folded stacks: how many instructions were executed with which calls open, a line for each such
// stack, as programs that draw flame graphs read it:
//
//   main;round_work;leaf 340
//
// Threading: a pure function.
#pragma once

#include <functional>
#include <string_view>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

// Deeper calls are counted to the one at this depth.
constexpr std::size_t kMaxFoldedDepth = 500;

// Calls `line` for every stack, without a line feed, until it says false. Gaps are left out. Of the
// history's items only some are counted, if so wanted; whatever calls them is there all the same.
void list_folded_stacks(const CallHistory& calls, const std::function<bool(std::string_view)>& line,
                        Range counted = {1, ~std::uint64_t{0}});

}  // namespace tailtrace
