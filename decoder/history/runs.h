// HistoryRuns: a history run by run, oldest first, for whoever does not need each instruction.
//
// Threading: one thread at a time. The history must outlive it.
#pragma once

#include "decoder/history/history.h"

namespace tailtrace {

// The contribution of one record: step.shown instructions from step.start on, numbered from `first`
// on, then a gap if step.has_gap.
struct HistoryRun {
  std::uint64_t first = 0;
  Step step;
  const BranchRecord* record = nullptr;  // until the next run is read
  std::uint64_t time_before = 0;         // the last known before the record; 0 unknown

  // The run ends with the instruction at record->from, which made the record.
  bool ends_with_branch() const {
    return step.shown != 0 && step.shown == record->insns && !record->is_async() &&
           !record->from.is_null();
  }
};

class HistoryRuns {
 public:
  // Begins with the run that holds the item `number`.
  // REQUIRES: there is such an item, or the history is empty.
  HistoryRuns(const History& history, std::uint64_t number);

  // The next run, leaving out records that contribute nothing; false when there is none, or the
  // history is abandoned.
  bool next(HistoryRun& run);

  // The same with those records; an event may be all that one of them tells.
  bool next_record(HistoryRun& run);

  // The code that goes with the run last returned.
  CodeReader& code() { return reader_.code(); }

 private:
  // What is read next.
  struct Place {
    std::size_t record = 0;    // of the segment
    std::uint64_t before = 0;  // items of all earlier records of the segment
    FlowState state;
  };

  bool is_at_end() const { return place_.record == segment_.segment->records().size(); }
  bool take(HistoryRun& run);
  void take_over_seam(HistoryRun& run);
  bool go_to_newer();

  const History& history_;
  RunReader reader_;
  History::Placed segment_;
  Place place_;
  BranchRecord joined_;  // a run's record, where the run began in an older segment
};

}  // namespace tailtrace
