#include "decoder/history/runs.h"

namespace tailtrace {

HistoryRuns::HistoryRuns(const History& history, std::uint64_t number)
    : history_(history), reader_(*history.snapshot_->code, History::kFollowedRuns) {
  if (history.groups_.empty()) return;
  std::size_t group = history.group_of(number);
  const History::Group& entry = history.groups_[group];
  record_ = group * History::kGroupRecords;
  before_ = entry.before;
  state_ = entry.state;
  HistoryRun run;
  for (;;) {
    std::size_t record = record_;
    std::uint64_t before = before_;
    FlowState state = state_;
    if (!next(run)) return;
    if (run.first + run.step.items() <= number) continue;
    record_ = record;
    before_ = before;
    state_ = state;
    return;
  }
}

bool HistoryRuns::next(HistoryRun& run) {
  while (next_record(run))
    if (run.step.items() != 0) return true;
  return false;
}

bool HistoryRuns::next_record(HistoryRun& run) {
  const std::vector<BranchRecord>& records = history_.snapshot_->records;
  if (record_ == records.size()) return false;
  run.record = &records[record_];
  run.first = before_ + 1;
  run.step = reader_.advance(state_, *run.record, history_.run_limit_insns(record_));
  ++record_;
  before_ += run.step.items();
  if (run.step.items() != 0) reader_.code().set_epoch(run.step.epoch);
  return true;
}

}  // namespace tailtrace
