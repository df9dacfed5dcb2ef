#include "decoder/history/calls/calls.h"

#include <algorithm>
#include <cassert>

#include "decoder/history/calls/call_builder.h"

namespace tailtrace {

Result<CallHistory> CallHistory::make(const History& history, Symbolizer& symbols, Range range) {
  assert(range.first >= 1 && range.last <= history.newest());
  return CallBuilder(history, symbols, range).build();
}

CallSegment CallHistory::at(std::uint64_t number) const {
  assert(number >= 1 && number <= size());
  const KeptSegment& kept = segments_[number - 1];
  CallSegment segment;
  segment.number = number;
  segment.items = {kept.first, (number == size() ? end_ : segments_[number].first) - 1};
  segment.function = functions_[kept.function];
  segment.level = kept.level;
  segment.caller = kept.caller;
  segment.earlier = kept.earlier;
  segment.later = kept.later;
  segment.tail_called = kept.tail_called;
  segment.begun_before = kept.begun_before && kept.earlier == 0;
  return segment;
}

std::uint64_t CallHistory::follow(std::uint64_t number, std::uint32_t KeptSegment::*link) const {
  for (std::uint64_t left = size(); left != 0; --left) {
    const std::uint64_t next = segments_[number - 1].*link;
    if (next == 0) break;
    number = next;
  }
  return number;
}

std::uint64_t CallHistory::first_part(std::uint64_t number) const {
  return follow(number, &KeptSegment::earlier);
}

std::uint64_t CallHistory::last_part(std::uint64_t number) const {
  return follow(number, &KeptSegment::later);
}

std::optional<std::uint64_t> CallHistory::holding(std::uint64_t item) const {
  if (segments_.empty() || item < segments_.front().first || item >= end_) return std::nullopt;
  auto after = std::upper_bound(segments_.begin(), segments_.end(), item,
                                [](std::uint64_t n, const KeptSegment& s) { return n < s.first; });
  return static_cast<std::uint64_t>(after - segments_.begin());
}

}  // namespace tailtrace
