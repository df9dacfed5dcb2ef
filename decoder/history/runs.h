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
  const BranchRecord* record = nullptr;

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

  // The next run, leaving out records that contribute nothing; false when there is none.
  bool next(HistoryRun& run);

  // The same with those records; an event may be all that one of them tells.
  bool next_record(HistoryRun& run);

  // The code that goes with the run last returned.
  CodeReader& code() { return reader_.code(); }

 private:
  const History& history_;
  RunReader reader_;
  std::size_t record_ = 0;
  std::uint64_t before_ = 0;  // items of all earlier records
  FlowState state_;
};

}  // namespace tailtrace
