// What takes the flow away between two instructions: a signal, an interrupt, an exception, the
// abort of a transaction, a debugger that writes the pc.
//
// Threading: as the history.
#pragma once

#include <optional>

#include "decoder/history/history.h"

namespace tailtrace {

constexpr bool is_interruption(RecordKind kind) {
  return kind >= RecordKind::kInterrupt && kind <= RecordKind::kDiscontinuity;
}

// The one that led to an item's instruction, and to nothing before; nothing where another
// instruction did, or nobody knows.
std::optional<BranchRecord> interruption_before(const History& history, const HistoryItem& item);

}  // namespace tailtrace
