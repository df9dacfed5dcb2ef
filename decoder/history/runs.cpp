#include "decoder/history/runs.h"

namespace tailtrace {
HistoryRuns::HistoryRuns(const History& history, std::uint64_t number)
    : history_(history), reader_(*history.frame().code, kFollowedRuns) {
  std::optional<History::Placed> held = history.holding(number);
  if (!held) return;
  history.come_to(number);
  // A run over a seam is entered where it began.
  while (number - held->first < held->segment->records().front().insns &&
         history.goes_on(held->index)) {
    held = history.placed(held->index + 1);
    number = held->first + held->segment->items() - 1;
    if (held->segment->record_count() != 0) break;
  }
  segment_ = std::move(*held);
  std::uint64_t offset = number - segment_.first;
  std::size_t group = segment_.segment->group_of(offset);
  const RecordGroup& entry = segment_.segment->groups()[group];
  place_ = {group * DecodedSegment::kGroupRecords, entry.before, entry.state};
  HistoryRun run;
  for (;;) {
    const Place place = place_;
    const History::Placed segment = segment_;
    if (!next(run)) return;
    if (run.first + run.step.items() <= number) continue;
    place_ = place;
    segment_ = segment;
    return;
  }
}

bool HistoryRuns::next(HistoryRun& run) {
  while (next_record(run))
    if (run.step.items() != 0) return true;
  return false;
}

bool HistoryRuns::next_record(HistoryRun& run) {
  if (segment_.segment == nullptr) return false;
  while (is_at_end())
    if (!go_to_newer()) return false;
  if (!take(run) && !run.step.has_gap) take_over_seam(run);
  if (run.step.items() != 0) reader_.code().set_epoch(run.step.epoch);
  return true;
}

// False: the record is a seam.
bool HistoryRuns::take(HistoryRun& run) {
  const DecodedSegment& segment = *segment_.segment;
  const std::size_t at = place_.record++;
  run.record = &segment.records()[at];
  run.first = segment_.first + place_.before;
  run.time_before = segment.time_before(at);
  run.step = segment.follow(at, place_.state, reader_);
  place_.before += run.step.items();
  return run.record != segment.seam();
}

// The run that began in the older segment is one with its end in the newer one.
void HistoryRuns::take_over_seam(HistoryRun& run) {
  for (bool whole = false; !whole;) {
    const HistoryRun begin = run;
    const std::uint32_t insns = run.record->insns;
    if (!go_to_newer() || is_at_end()) return;
    whole = take(run);
    joined_ = *run.record;
    joined_.insns += insns;
    run.record = &joined_;
    run.first = begin.first;
    run.time_before = begin.time_before;
    if (begin.step.shown != 0) run.step.start = begin.step.start;
    run.step.shown += begin.step.shown;
  }
}

bool HistoryRuns::go_to_newer() {
  if (segment_.index == 0) return false;
  history_.come_to(segment_.first);
  if (history_.is_abandoned()) return false;
  segment_ = *history_.placed(segment_.index - 1);
  place_ = {};
  if (!segment_.segment->groups().empty()) place_.state = segment_.segment->groups().front().state;
  return true;
}

}  // namespace tailtrace
