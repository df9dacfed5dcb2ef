#include "plugin/server/recording/snapshot_cut.h"

#include <algorithm>
#include <cassert>

namespace tailtrace {
HistoryMark end_mark(const ThreadSnapshot& snapshot) {
  assert(!snapshot.records.empty());
  const BranchRecord& last = snapshot.records.back();
  return {{snapshot.end().value - closing_records(snapshot)}, last.insns, last.from};
}

ThreadSnapshot since(ThreadSnapshot snapshot, const HistoryMark& mark) {
  if (mark.head < snapshot.first || mark.head >= snapshot.end()) return snapshot;
  std::vector<BranchRecord>& records = snapshot.records;
  std::uint64_t before = mark.head.value - snapshot.first.value;
  if (records[before].kind == RecordKind::kEnable) {
    drop_oldest(snapshot, before);
    return snapshot;
  }
  BranchRecord enable;
  enable.to = mark.pc;
  enable.kind = RecordKind::kEnable;
  enable.flags = kFlagSynthetic;
  enable.extra = static_cast<std::uint16_t>(EdgeCause::kDebugger);
  begin_with(snapshot, before, enable);
  records[1].insns -= std::min(records[1].insns, mark.open_insns);
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
