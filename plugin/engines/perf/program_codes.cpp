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

pt::ProgramCodes ProgramCodes::all() const {
  pt::ProgramCodes programs;
  for (const auto& [pid, code] : codes_) programs[pid] = {code.image().get(), code.begins()};
  return programs;
}

}  // namespace tailtrace::perf
