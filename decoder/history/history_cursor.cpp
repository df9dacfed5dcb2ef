#include <algorithm>
#include <cassert>

#include "decoder/history/history.h"

namespace tailtrace {
namespace {

// A cursor stays near one place.
constexpr std::size_t kCursorRuns = 256;

constexpr std::size_t kGroupRecords = DecodedSegment::kGroupRecords;

}  // namespace

HistoryCursor::HistoryCursor(const History& history)
    : history_(&history), reader_(*history.frame().code, kCursorRuns) {}

void HistoryCursor::seek(std::uint64_t number) {
  item_ = {};
  bool here = place_.segment != nullptr && number >= place_.first &&
              number - place_.first < place_.segment->items();
  if (!here) {
    std::optional<History::Placed> place = history_->holding(number);
    if (!place) return;
    place_ = std::move(*place);
    group_ = window_record_ = ~std::size_t{0};
    parts_.clear();
  }
  item_.number = number;
  seek_inside(number - place_.first);
}

// `item` counts from 0, the segment's oldest.
void HistoryCursor::seek_inside(std::uint64_t item) {
  auto holds = [&](const Part& p) { return p.before <= item && item < p.before + p.step.items(); };
  if (parts_.empty() || !holds(parts_[part_])) {
    std::size_t group = place_.segment->group_of(item);
    if (group != group_) load_group(group);
    auto after = std::partition_point(parts_.begin(), parts_.end(),
                                      [&](const Part& p) { return p.before <= item; });
    part_ = static_cast<std::size_t>(after - parts_.begin()) - 1;
  }
  const Part& part = parts_[part_];
  assert(holds(part));
  std::size_t record = group_ * kGroupRecords + part_;
  item_.record = {place_.first_record + record};
  item_.time = place_.segment->time_before(record);
  std::uint64_t offset = item - part.before;
  if (offset == part.step.shown) {
    show_gap(part, record);
  } else {
    show_instruction(part, record, offset);
  }
}

void HistoryCursor::load_group(std::size_t group) {
  const std::span<const BranchRecord> records = place_.segment->records();
  std::size_t begin = group * kGroupRecords;
  std::size_t end = std::min(begin + kGroupRecords, records.size());
  parts_.clear();
  std::uint64_t before = place_.segment->groups()[group].before;
  behind_ = place_.segment->groups()[group].state;
  for (std::size_t i = begin; i < end; ++i) {
    Step step = place_.segment->follow(i, behind_, reader_);
    parts_.push_back({before, step});
    before += step.items();
  }
  group_ = group;
}

// What followed a gap and could not be shown either belongs to it. A segment begins where the flow
// is known, so that this never goes on in a newer one.
void HistoryCursor::show_gap(const Part& part, std::size_t record) {
  constexpr std::size_t kMaxAhead_records = 1 << 14;
  item_.is_gap = true;
  item_.gap = part.step.gap;
  item_.epoch = part.step.epoch;
  for (std::size_t i = part_ + 1; i < parts_.size(); ++i) {
    if (parts_[i].step.items() != 0) return;
    item_.gap.lost += parts_[i].step.gap.lost;
  }
  const std::span<const BranchRecord> records = place_.segment->records();
  std::size_t begin = (group_ + 1) * kGroupRecords;
  std::size_t end = std::min(records.size(), record + kMaxAhead_records);
  FlowState state = behind_;
  for (std::size_t i = begin; i < end; ++i) {
    Step step = place_.segment->follow(i, state, reader_);
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
  item_.begins_run = offset == 0 && (record != 0 || !history_->goes_on(place_.index));
  const BranchRecord& r = place_.segment->records()[record];
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
