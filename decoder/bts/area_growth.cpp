#include "decoder/bts/area_growth.h"

#include <algorithm>
#include <vector>

#include "decoder/perf/aux_area.h"

namespace tailtrace::bts {
namespace {

using perf::kBtsRecordSize_bytes;

bool is_same(ByteSpan seen, ByteSpan now, std::uint64_t begin, std::uint64_t end) {
  return std::equal(seen.begin() + static_cast<std::ptrdiff_t>(begin),
                    seen.begin() + static_cast<std::ptrdiff_t>(end),
                    now.begin() + static_cast<std::ptrdiff_t>(begin));
}

// What was not written since: from the head round to where it stood.
bool is_as_seen(ByteSpan seen, std::uint64_t seen_head, ByteSpan now, std::uint64_t head) {
  if (head == seen_head) return is_same(seen, now, 0, now.size());
  if (head < seen_head) return is_same(seen, now, head, seen_head);
  return is_same(seen, now, 0, seen_head) && is_same(seen, now, head, now.size());
}

// Whether the newest `count` records repeat with a period of at most half of them: then they may
// have been written once more. The prefix function of Knuth, Morris and Pratt.
bool repeats(ByteSpan area, std::uint64_t head, std::size_t count) {
  const std::size_t capacity = area.size() / kBtsRecordSize_bytes;
  const std::size_t first = head / kBtsRecordSize_bytes + capacity - count;
  auto same = [&](std::size_t a, std::size_t b) {
    auto record = [&](std::size_t i) {
      return area.data() + (first + i) % capacity * kBtsRecordSize_bytes;
    };
    return std::equal(record(a), record(a) + kBtsRecordSize_bytes, record(b));
  };
  std::vector<std::uint32_t> border(count, 0);
  for (std::size_t i = 1, k = 0; i < count; ++i) {
    while (k > 0 && !same(i, k)) k = border[k - 1];
    if (same(i, k)) ++k;
    border[i] = static_cast<std::uint32_t>(k);
  }
  return count != 0 && 2 * border.back() >= count;
}

}  // namespace

Growth growth_since(ByteSpan seen, std::uint64_t seen_head, ByteSpan now, std::uint64_t head) {
  if (!is_as_seen(seen, seen_head, now, head)) return Growth::kWentRound;
  // The last record of an area that never was full is still zero.
  ByteSpan last = now.last(std::min(now.size(), kBtsRecordSize_bytes));
  if (std::ranges::all_of(last, [](std::uint8_t byte) { return byte == 0; }))
    return Growth::kContinued;
  const std::size_t capacity = now.size() / kBtsRecordSize_bytes;
  const std::size_t added = (head + now.size() - seen_head) % now.size() / kBtsRecordSize_bytes;
  const std::size_t kept = capacity - added;
  if (kept < capacity / 2 || repeats(seen, seen_head, kept)) return Growth::kUndecided;
  return Growth::kContinued;
}

}  // namespace tailtrace::bts
