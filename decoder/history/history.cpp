#include "decoder/history/history.h"

#include <algorithm>
#include <cassert>

namespace tailtrace {
namespace {

// No straight run is longer; a corrupt file may claim billions of instructions.
constexpr std::uint64_t kMaxRun_insns = 1ull << 24;
// Runs are followed once each, loops not again: honest records never need this much. Whoever does
// is believed short runs only from there on, so that no file keeps us busy for minutes.
constexpr std::uint64_t kMaxWork_insns = 1ull << 27;
constexpr std::uint64_t kMaxDoubtfulRun_insns = 64;

// A cursor stays near one place.
constexpr std::size_t kCursorRuns = 256;

}  // namespace

History::History(std::shared_ptr<const ThreadSnapshot> snapshot) : snapshot_(std::move(snapshot)) {
  assert(snapshot_ != nullptr && snapshot_->code != nullptr);
  const std::vector<BranchRecord>& records = snapshot_->records;
  groups_.reserve(records.size() / kGroupRecords + 1);
  RunReader reader(*snapshot_->code, kFollowedRuns);
  end_.epoch = snapshot_->first_epoch;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i % kGroupRecords == 0) groups_.push_back({size_, end_});
    if (doubtful_ > i && reader.walked_insns() > kMaxWork_insns + i * kMaxDoubtfulRun_insns)
      doubtful_ = i;
    Step step = reader.advance(end_, records[i], run_limit_insns(i));
    size_ += step.items();
    gaps_ += step.has_gap ? 1 : 0;
  }
}

std::uint64_t History::run_limit_insns(std::size_t record) const {
  return record < doubtful_ ? kMaxRun_insns : kMaxDoubtfulRun_insns;
}

void History::each_gap(const std::function<void(GapReason)>& see) const {
  if (gaps_ == 0) return;
  RunReader reader(*snapshot_->code, kFollowedRuns);
  FlowState state = groups_.front().state;
  for (std::size_t i = 0; i < snapshot_->records.size(); ++i) {
    Step step = reader.advance(state, snapshot_->records[i], run_limit_insns(i));
    if (step.has_gap) see(step.gap.reason);
  }
}

std::optional<Address> History::stop() const {
  if (end_.place == FlowState::Place::kUnknown) return std::nullopt;
  return end_.at;
}

std::optional<std::uint64_t> History::resolve(std::int64_t index) const {
  // Negated as unsigned: the smallest number has no positive counterpart.
  std::uint64_t back = 0 - static_cast<std::uint64_t>(index);
  if (index < 0 && back <= size_) return size_ + 1 - back;
  if (index > 0 && static_cast<std::uint64_t>(index) <= size_) return index;
  return std::nullopt;
}

std::size_t History::group_of(std::uint64_t number) const {
  auto after = std::upper_bound(groups_.begin(), groups_.end(), number - 1,
                                [](std::uint64_t n, const Group& g) { return n < g.before; });
  return static_cast<std::size_t>(after - groups_.begin()) - 1;
}

HistoryCursor::HistoryCursor(const History& history)
    : history_(&history), reader_(*history.snapshot_->code, kCursorRuns) {}

void HistoryCursor::seek(std::uint64_t number) {
  if (number == 0 || number > history_->size_) {
    item_ = {};
    return;
  }
  auto holds = [&](const Part& p) {
    return p.before < number && number <= p.before + p.step.items();
  };
  if (parts_.empty() || !holds(parts_[part_])) {
    std::size_t group = history_->group_of(number);
    if (group != group_) load_group(group);
    auto after = std::partition_point(parts_.begin(), parts_.end(),
                                      [&](const Part& p) { return p.before < number; });
    part_ = static_cast<std::size_t>(after - parts_.begin()) - 1;
  }
  const Part& part = parts_[part_];
  assert(holds(part));
  std::size_t record = group_ * History::kGroupRecords + part_;
  item_ = {};
  item_.number = number;
  item_.record = {history_->snapshot_->first.value + record};
  item_.time = record == 0 ? 0 : history_->snapshot_->records[record - 1].time;
  std::uint64_t offset = number - part.before - 1;
  if (offset == part.step.shown) {
    show_gap(part, record);
  } else {
    show_instruction(part, record, offset);
  }
}

void HistoryCursor::load_group(std::size_t group) {
  const std::vector<BranchRecord>& records = history_->snapshot_->records;
  std::size_t begin = group * History::kGroupRecords;
  std::size_t end = std::min(begin + History::kGroupRecords, records.size());
  parts_.clear();
  std::uint64_t before = history_->groups_[group].before;
  behind_ = history_->groups_[group].state;
  for (std::size_t i = begin; i < end; ++i) {
    Step step = reader_.advance(behind_, records[i], history_->run_limit_insns(i));
    parts_.push_back({before, step});
    before += step.items();
  }
  group_ = group;
}

// What followed a gap and could not be shown either belongs to it.
void HistoryCursor::show_gap(const Part& part, std::size_t record) {
  constexpr std::size_t kMaxAhead_records = 1 << 14;
  item_.is_gap = true;
  item_.gap = part.step.gap;
  item_.epoch = part.step.epoch;
  for (std::size_t i = part_ + 1; i < parts_.size(); ++i) {
    if (parts_[i].step.items() != 0) return;
    item_.gap.lost += parts_[i].step.gap.lost;
  }
  const std::vector<BranchRecord>& records = history_->snapshot_->records;
  std::size_t begin = (group_ + 1) * History::kGroupRecords;
  std::size_t end = std::min(records.size(), record + kMaxAhead_records);
  FlowState state = behind_;
  for (std::size_t i = begin; i < end; ++i) {
    Step step = reader_.advance(state, records[i], history_->run_limit_insns(i));
    if (step.items() != 0) return;
    item_.gap.lost += step.gap.lost;
  }
  item_.gap.lost_more = end < records.size();
}

void HistoryCursor::show_instruction(const Part& part, std::size_t record, std::uint64_t offset) {
  if (record != window_record_ || offset < window_first_ ||
      offset - window_first_ >= window_.size())
    load_window(part, record, offset);
  reader_.code().set_epoch(part.step.epoch);
  std::optional<Instruction> insn = reader_.code().at(window_[offset - window_first_]);
  assert(insn);  // this path was followed before
  item_.instruction = *insn;
  item_.epoch = part.step.epoch;
  item_.begins_run = offset == 0;
  const BranchRecord& r = history_->snapshot_->records[record];
  bool ends = offset + 1 == part.step.shown && insn->address == r.from && !r.is_async();
  if (ends && insn->is_branch()) item_.branch = &r;
}

void HistoryCursor::load_window(const Part& part, std::size_t record, std::uint64_t offset) {
  CodeReader& code = reader_.code();
  code.set_epoch(part.step.epoch);
  std::uint64_t first = offset / kWindow_insns * kWindow_insns;
  Address at = part.step.start;
  // A run can only be followed from its beginning; a window further on spares that.
  std::uint64_t i = 0;
  if (record == window_record_ && first >= window_first_ && !window_.empty()) {
    i = window_first_;
    at = window_.front();
  }
  for (; i < first; ++i) at = code.at(at)->next();
  window_.clear();
  std::uint64_t end = std::min<std::uint64_t>(part.step.shown, first + kWindow_insns);
  for (; i < end; ++i) {
    window_.push_back(at);
    at = code.at(at)->next();
  }
  window_record_ = record;
  window_first_ = first;
}

Bytes HistoryCursor::bytes() {
  if (item_.is_gap) return {};
  reader_.code().set_epoch(item_.epoch);
  return reader_.code().bytes_of(item_.instruction);
}

}  // namespace tailtrace
