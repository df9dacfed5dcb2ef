// The records that a stretch of a history is made of, for exports of records.
//
// Threading: pure functions.
#pragma once

#include "decoder/history/range.h"
#include "decoder/history/runs.h"

namespace tailtrace {

// Calls `see` for the records that any of the items belongs to, oldest first; behind the newest
// item, for those that tell how the recording ended. False: enough. Returns how many there were.
// REQUIRES: a range of the history that is not empty.
template <class See>
std::uint64_t each_record_of(const History& history, Range range, See see) {
  std::uint64_t count = 0;
  const std::uint64_t last = range.last == history.newest() ? ~0ull : range.last;
  HistoryRuns walk(history, range.first);
  for (HistoryRun run; walk.next_record(run) && run.first <= last; ++count)
    if (!see(*run.record)) break;
  return count;
}

}  // namespace tailtrace
