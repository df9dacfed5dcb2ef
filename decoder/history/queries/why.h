// Why an instruction was executed: the chain of branches that decided it, newest first.
//
// A branch decided if it need not have led there, and did (FlowGraph::decides). Whatever was
// executed in between made no difference and is left out: calls that had returned, loops that had
// ended, conditions whose both outcomes lead on to the same place. The chain goes on from the
// branch itself: what decided that it was executed? It leaves a function by the call of it.
//
// Threading: pure functions; one thread at a time for a symbolizer.
#pragma once

#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

struct Decision {
  std::uint64_t item = 0;  // the branch, the call, or the last instruction before an event
  Address address;
  Address to;                         // where it led
  std::optional<BranchRecord> event;  // that took the flow away behind it; else the branch did
  InstructionClass kind = InstructionClass::kOther;
  bool taken = false;  // of conditional branches
  Epoch epoch;         // of the code

  // The same decision as another one, at another time.
  bool same_as(const Decision& other) const;
};

struct Reasons {
  enum class End : std::uint8_t {
    kBegin,  // further back nothing is held
    kGap,    // a gap hides what decided
    kLimit,  // enough was looked at
  };
  std::uint64_t item = 0;           // what they are of
  std::vector<Decision> decisions;  // newest first
  End end = End::kBegin;
  std::uint64_t end_item = 0;  // the gap; 0 for kBegin
};

// Of an item, or of the instruction where the thread stands: that is behind the newest item. Where
// it is not known, or what was recorded does not lead there, they are of the newest item.
// Errors: as CallHistory::make. REQUIRES: a history that has items, and one of them or behind them.
Result<Reasons> find_reasons(const History& history, Symbolizer& symbols, std::uint64_t item,
                             std::size_t limit_decisions);

// Decisions in a row: `count` of them from `first` on, which were made so often, one round behind
// the other.
struct FoldedDecisions {
  std::size_t first = 0;
  std::size_t count = 1;
  std::size_t times = 1;
};

// Folds rounds of up to kMaxRound decisions.
constexpr std::size_t kMaxRound = 8;
std::vector<FoldedDecisions> fold_decisions(const std::vector<Decision>& decisions);

}  // namespace tailtrace
