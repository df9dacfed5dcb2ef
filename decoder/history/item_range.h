// Ranges of a history's items as users give them.
//
// Threading: a pure function.
#pragma once

#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

// What parse_range says of the history's items, in the history's own numbers. Items are counted
// only where the text counts from the oldest. `previous` is in the history's numbers, too.
Result<Range> item_range(const History& history, std::string_view text, std::uint64_t page,
                         const std::optional<Range>& previous = {});

}  // namespace tailtrace
