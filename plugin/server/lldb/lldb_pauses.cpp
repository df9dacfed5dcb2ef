#include "plugin/server/lldb/lldb_pauses.h"

#include <algorithm>
#include <utility>

namespace tailtrace {
namespace {

constexpr std::uint16_t kByDebugger = static_cast<std::uint16_t>(EdgeCause::kDebugger);

BranchRecord end_at(const Pause& pause, std::uint32_t insns) {
  return {pause.at.pc, {}, pause.stopped, insns, RecordKind::kDisable, kFlagAsync | kFlagSynthetic,
          kByDebugger};
}

BranchRecord begin_at(const Pause& pause) {
  return {{}, pause.at.pc, pause.resumed, 0, RecordKind::kEnable, kFlagSynthetic, kByDebugger};
}

// Whether nothing was executed since the pause before. The stop at which recording began is shown,
// as that of a processor's trace is: LLDB numbers what it shows from there.
bool has_just_begun(const std::vector<BranchRecord>& records) {
  return records.size() > 1 && records.back().kind == RecordKind::kEnable;
}

// A thread that has not run since the last pause stands where that one has shown it already.
void drop_empty_end(std::vector<BranchRecord>& records) {
  if (records.size() < 3) return;
  const BranchRecord &end = records.back(), &begin = records[records.size() - 2];
  bool is_empty = end.kind == RecordKind::kDisable && end.insns == 0 && end.from == begin.to;
  bool is_pause = begin.kind == RecordKind::kEnable && (begin.flags & kFlagSynthetic) != 0 &&
                  records[records.size() - 3].kind == RecordKind::kDisable;
  if (is_empty && is_pause) records.resize(records.size() - 2);
}

}  // namespace

void insert_pauses(ThreadSnapshot& snapshot, const HistoryMark& begin,
                   std::span<const Pause> pauses) {
  std::vector<BranchRecord> shown;
  shown.reserve(snapshot.records.size() + 2 * pauses.size());
  auto pause = pauses.begin();
  // since() puts an opening record in the place of the one before.
  Position position = snapshot.first;
  for (BranchRecord record : snapshot.records) {
    std::uint32_t done = position == begin.head ? begin.open_insns : 0;  // of the run, not shown
    const Pause* at_begin = nullptr;  // at the stop at which recording began
    while (pause != pauses.end() && pause->at.head < position) ++pause;
    for (; pause != pauses.end() && pause->at.head == position; ++pause) {
      if (record.kind == RecordKind::kEnable) {
        if (shown.empty() && pause->at.pc == record.to) at_begin = &*pause;
        continue;
      }
      if (pause->at.open_insns < done) continue;
      std::uint32_t insns = pause->at.open_insns - done;
      if (insns > record.insns) break;  // a mark of something else
      if (insns == 0 && has_just_begun(shown)) {
        shown.back().time = pause->resumed;
        continue;
      }
      shown.push_back(end_at(*pause, insns));
      shown.push_back(begin_at(*pause));
      record.insns -= insns;
      done += insns;
    }
    shown.push_back(record);
    if (at_begin != nullptr) {
      shown.push_back(end_at(*at_begin, 0));
      shown.push_back(begin_at(*at_begin));
    }
    ++position.value;
  }
  drop_empty_end(shown);
  snapshot.records = std::move(shown);
}

}  // namespace tailtrace
