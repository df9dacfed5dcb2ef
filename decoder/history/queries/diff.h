// Where two runs of a program went different ways.
//
// Calls are aligned by the names of functions, then what was executed in each by instruction, or,
// where the code is not the same in both, by source line, wherever in its file the function is.
// Addresses are never compared: programs and libraries may have been loaded elsewhere, and another
// build may have other code.
//
// Threading: a pure function; one thread at a time for a symbolizer.
#pragma once

#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

struct DiffSide {
  const History& history;
  Symbolizer& symbols;
  Range items;         // of the history; what is compared
  std::string module;  // only functions of modules whose paths end so; empty: all
};

// Stretches that stand for each other and are not the same.
struct Divergence {
  enum class What : std::uint8_t {
    kCalls,  // other functions were called
    kPath,   // the same function took another way
  };
  What what = What::kCalls;
  std::string function;  // of the first item that differs, or of the call it is in
  Range here, there;     // items; empty where the other has nothing instead
  // kPath: the last items that were the same, mostly the branches that went different ways; 0: none
  std::uint64_t fork_here = 0, fork_there = 0;
};

struct HistoryDiff {
  std::vector<Divergence> divergences;            // oldest first
  bool more = false;                              // there are more than were asked for
  std::uint64_t calls_here = 0, calls_there = 0;  // that were compared
  std::uint64_t same_calls = 0;                   // that went the same way in both
};

// Errors: as CallHistory::make; kUsage when neither executed code of the module.
Result<HistoryDiff> diff_histories(const DiffSide& here, const DiffSide& there, std::size_t limit);

}  // namespace tailtrace
