#include "plugin/engines/perf/program_codes.h"

#include <algorithm>

namespace tailtrace::perf {

ProgramCodes::ProgramCodes(std::int32_t pid, bool children) : first_(pid), children_(children) {
  codes_.emplace(pid, ProcessCode(pid));
}

void ProgramCodes::update(std::vector<Told> told, std::uint64_t now) {
  std::stable_sort(told.begin(), told.end(),
                   [](const Told& a, const Told& b) { return a.time < b.time; });
  std::map<std::int32_t, std::vector<MapChange>> changes;
  for (Told& one : told) {
    if (auto* map = std::get_if<MmapEvent>(&one.record.body)) {
      changes[map->thread.pid].push_back({one.time, std::move(*map)});
      continue;
    }
    auto* task = std::get_if<TaskEvent>(&one.record.body);
    const bool is_process =
        task != nullptr && task->begins && children_ && task->thread.pid != task->parent.pid;
    auto parent = is_process ? codes_.find(task->parent.pid) : codes_.end();
    if (parent == codes_.end()) continue;
    codes_.insert_or_assign(task->thread.pid, parent->second.of_child(task->thread.pid));
    changes[task->thread.pid] = changes[task->parent.pid];
  }
  // Of processes that are gone there stays what was known.
  for (auto& [pid, code] : codes_) (void)code.update(std::move(changes[pid]), now).has_value();
}

const ProcessCode& ProgramCodes::of(std::int32_t pid) const {
  auto known = codes_.find(pid);
  return known == codes_.end() ? codes_.at(first_) : known->second;
}

ProgramCodes::Joined ProgramCodes::joined() const {
  Joined joined;
  for (const auto& [pid, code] : codes_) joined.bases[pid] = joined.image.append(*code.image());
  return joined;
}

std::vector<pt::CodeChange> ProgramCodes::changes(const Joined& joined, const CpuSlots& slots,
                                                  const TimeConversion& clock) const {
  std::vector<pt::CodeChange> changes;
  std::uint64_t begin = 0;
  for (const CpuSlot& slot : slots.slots) {
    // What lies between two slots belongs to the later one.
    const std::uint64_t end = slot.end_ns == ~0ull ? ~0ull : clock.to_tsc(slot.end_ns + 1);
    auto base = joined.bases.find(slot.thread.pid);
    if (base == joined.bases.end()) base = joined.bases.find(first_);
    Epoch epoch = base->second;
    std::vector<pt::CodeChange> inside;
    for (const EpochBegin& began : of(slot.thread.pid).begins()) {
      const Epoch from{base->second.value + began.epoch.value};
      if (began.time <= begin) epoch = from;
      if (began.time > begin && began.time < end) inside.push_back({0, began.time, from});
    }
    if (changes.empty() || changes.back().epoch != epoch) changes.push_back({0, begin, epoch});
    changes.insert(changes.end(), inside.begin(), inside.end());
    begin = end;
  }
  return changes;
}

}  // namespace tailtrace::perf
