#include "decoder/history/calls/newest_calls.h"

namespace tailtrace {

Range newest_items(const History& history, std::uint64_t count) {
  std::uint64_t newest = history.newest();
  bool all = count > newest || (count != 0 && !history.holds(newest - count + 1));
  return {all ? history.oldest() : newest - count + 1, newest};
}

Result<CallHistory> newest_calls(const History& history, Symbolizer& symbols,
                                 const std::function<bool(std::uint64_t segments)>& enough) {
  constexpr std::uint64_t kFirst = 1 << 14;
  for (std::uint64_t count = kFirst;; count *= 4) {
    Range items = newest_items(history, count);
    Result<CallHistory> calls = CallHistory::make(history, symbols, items);
    if (!calls || items.size() < count || enough(calls->size())) return calls;
  }
}

bool holds_older(const History& history, const CallHistory& calls) {
  return calls.size() != 0 && history.holds(calls.at(1).items.first - 1);
}

}  // namespace tailtrace
