#include "plugin/server/snapshot_cut.h"

#include <algorithm>
#include <cassert>

namespace tailtrace {
HistoryMark end_mark(const ThreadSnapshot& snapshot) {
  assert(!snapshot.records.empty());
  const BranchRecord& last = snapshot.records.back();
  std::uint64_t made = 0;  // closing records that are in no ring
  for (auto it = snapshot.records.rbegin();
       it != snapshot.records.rend() && (it->flags & kFlagSynthetic) != 0; ++it)
    ++made;
  return {{snapshot.end().value - made}, last.insns, last.from};
}

ThreadSnapshot since(ThreadSnapshot snapshot, const HistoryMark& mark) {
  if (mark.head < snapshot.first || mark.head >= snapshot.end()) return snapshot;
  drop_oldest(snapshot, mark.head.value - snapshot.first.value);
  BranchRecord& first = snapshot.records.front();
  if (first.kind == RecordKind::kEnable) return snapshot;
  first.insns -= std::min(first.insns, mark.open_insns);
  BranchRecord enable;
  enable.to = mark.pc;
  enable.kind = RecordKind::kEnable;
  enable.flags = kFlagSynthetic;
  enable.extra = static_cast<std::uint16_t>(EdgeCause::kDebugger);
  snapshot.records.insert(snapshot.records.begin(), enable);
  // The record before the mark, if any, has given up its place to the opening one.
  if (snapshot.first.value > 0) --snapshot.first.value;
  snapshot.complete = true;
  return snapshot;
}

ThreadSnapshot of_this_program(ThreadSnapshot snapshot) {
  auto is_start = [](const BranchRecord& r) {
    return r.kind == RecordKind::kEnable && r.extra == static_cast<std::uint16_t>(EdgeCause::kExec);
  };
  auto last = std::find_if(snapshot.records.rbegin(), snapshot.records.rend(), is_start);
  if (last == snapshot.records.rend()) return snapshot;
  drop_oldest(snapshot, static_cast<std::size_t>(snapshot.records.rend() - last) - 1);
  return snapshot;
}

ThreadSnapshot newest_instructions(ThreadSnapshot snapshot, std::uint64_t instructions) {
  std::uint64_t held = 0;
  std::size_t keep = 0;
  for (auto it = snapshot.records.rbegin(); it != snapshot.records.rend(); ++it, ++keep) {
    held += it->insns;
    if (held > instructions && keep > 0) break;
  }
  drop_oldest(snapshot, snapshot.records.size() - keep);
  return snapshot;
}

}  // namespace tailtrace
