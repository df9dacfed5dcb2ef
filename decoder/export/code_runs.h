// What was executed, as programs that lay code out anew want to know it: straight runs and the
// branches between them, each different one once, with how often it was.
//
// Threading: one thread at a time.
#pragma once

#include <compare>
#include <map>

#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

// Instructions from `first` to `last`, both included, one after the other without a taken branch.
// `end` is one past the last byte.
struct CodeRun {
  Address first, last, end;
  Epoch epoch;  // of the code

  friend auto operator<=>(const CodeRun&, const CodeRun&) = default;
};

struct CodeBranch {
  Address from, to;
  Epoch epoch = {};

  friend auto operator<=>(const CodeBranch&, const CodeBranch&) = default;
};

struct BranchCount {
  std::uint64_t times = 0;
  std::uint64_t mispredicted = 0;
};

struct CodeRuns {
  std::map<CodeRun, std::uint64_t> runs;
  std::map<CodeBranch, BranchCount> branches;
};

// Adds a stretch of a history. Runs at its ends are cut; events that are no branches, as signals,
// only end runs. REQUIRES: a range of the history.
void add_code_runs(const History& history, Range range, CodeRuns& all);

// A run cut behind every branch that did not happen: basic blocks, of which each ends where control
// could have gone elsewhere. `code` is what ran it.
void each_block(const CodeRun& run, CodeReader& code,
                const std::function<void(Address begin, Address end)>& see);

}  // namespace tailtrace
