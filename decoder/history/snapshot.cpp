#include "decoder/history/snapshot.h"

#include <algorithm>

namespace tailtrace {

std::size_t closing_records(const ThreadSnapshot& snapshot) {
  auto is_in_ring = [](const BranchRecord& r) { return (r.flags & kFlagSynthetic) == 0; };
  const auto& records = snapshot.records;
  const auto newest = std::find_if(records.rbegin(), records.rend(), is_in_ring);
  return static_cast<std::size_t>(newest - records.rbegin());
}

void drop_oldest(ThreadSnapshot& snapshot, std::size_t count) {
  if (count == 0) return;
  auto begin = snapshot.records.begin();
  auto end = begin + static_cast<std::ptrdiff_t>(count);
  auto changes = std::count_if(
      begin, end, [](const BranchRecord& r) { return r.kind == RecordKind::kCodeChange; });
  snapshot.first_epoch.value += static_cast<std::uint32_t>(changes);
  snapshot.records.erase(begin, end);
  snapshot.first.value += count;
  snapshot.complete = false;
}

void begin_with(ThreadSnapshot& snapshot, std::size_t count, const BranchRecord& opening) {
  std::vector<BranchRecord>& records = snapshot.records;
  if (count == 0) {
    records.insert(records.begin(), opening);
    if (snapshot.first.value > 0) --snapshot.first.value;
  } else {
    drop_oldest(snapshot, count - 1);
    if (records[0].kind == RecordKind::kCodeChange) ++snapshot.first_epoch.value;
    records[0] = opening;
  }
  snapshot.complete = true;
}

void keep_newest(ThreadSnapshot& snapshot, std::uint64_t limit) {
  if (snapshot.records.size() > limit) drop_oldest(snapshot, snapshot.records.size() - limit);
}

}  // namespace tailtrace
