#include "decoder/symbols/code_phases.h"

#include <set>
#include <utility>

#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

BranchRecord going_on_at(Address to) {
  BranchRecord enable;
  enable.to = to;
  enable.kind = RecordKind::kEnable;
  enable.flags = kFlagSynthetic | kFlagAsync;
  return enable;
}

// Where the code changed there is nothing but an end to be shown.
BranchRecord ending_with(BranchRecord record) {
  record.kind = RecordKind::kDisable;
  record.to = {};
  record.extra = 0;
  return record;
}

std::set<Epoch> begins_of_files(const ThreadSnapshot& snapshot) {
  std::set<Epoch> begins;
  for (const FormerModule& module : parse_former_maps(snapshot.former_maps))
    if (module.until) begins.insert(*module.until);
  return begins;
}

std::size_t first_of_newest(const std::vector<BranchRecord>& records, std::uint64_t instructions) {
  std::uint64_t sum = 0;
  std::size_t first = records.size();
  while (first != 0 && sum < instructions) sum += records[--first].insns;
  return first;
}

}  // namespace

std::vector<CodePhase> code_phases(const ThreadSnapshot& snapshot, std::uint64_t instructions) {
  const std::set<Epoch> begins = begins_of_files(snapshot);
  const std::size_t first = first_of_newest(snapshot.records, instructions);
  std::vector<CodePhase> phases;
  Epoch epoch = snapshot.first_epoch;
  for (std::size_t i = 0; i < snapshot.records.size(); ++i) {
    const BranchRecord& record = snapshot.records[i];
    const bool changes = record.kind == RecordKind::kCodeChange;
    if (i >= first) {
      if (phases.empty()) {
        phases.push_back({epoch, {}});
        if (i != 0) phases.back().records.push_back(going_on_at(snapshot.records[i - 1].to));
      }
      phases.back().records.push_back(record);
    }
    if (changes) ++epoch.value;
    if (!changes || phases.empty() || !begins.contains(epoch)) continue;
    phases.back().records.back() = ending_with(record);
    phases.push_back({epoch, {going_on_at(record.to)}});
  }
  if (phases.empty()) phases.push_back({epoch, {}});
  return phases;
}

std::vector<CodePhase> code_phases(ThreadSnapshot&& snapshot, std::uint64_t instructions) {
  const std::size_t first = first_of_newest(snapshot.records, instructions);
  if (first == snapshot.records.size() || !begins_of_files(snapshot).empty())
    return code_phases(std::as_const(snapshot), instructions);
  if (first != 0) begin_with(snapshot, first, going_on_at(snapshot.records[first - 1].to));
  std::vector<CodePhase> phases;
  phases.push_back({snapshot.first_epoch, std::move(snapshot.records)});
  return phases;
}

}  // namespace tailtrace
