#include "decoder/history/item_range.h"

namespace tailtrace {

Result<Range> item_range(const History& history, std::string_view text, std::uint64_t page,
                         const std::optional<Range>& previous) {
  Result<Range> range = parse_range(text, {history.newest(), page, previous});
  if (!range || history.holds(range->first) || range->size() == 0) return range;
  // There are not so many: by now it is known how many there are.
  const std::uint64_t before = history.oldest() - 1;
  std::optional<Range> shown = previous;
  if (shown) *shown = {shown->first - before, shown->last - before};
  range = parse_range(text, {history.size(), page, shown});
  if (range && range->size() != 0) *range = {range->first + before, range->last + before};
  return range;
}

}  // namespace tailtrace
