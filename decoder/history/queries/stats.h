// Numbers about a stretch of a history: what was executed how often, and where.
//
// Threading: a pure function; one thread at a time for a symbolizer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

struct FunctionStats {
  std::string name;    // empty: not known
  std::string module;  // path; empty: not known
  std::uint64_t instructions = 0;
  std::uint64_t entries = 0;  // how often its first instruction was executed
};

struct HistoryStats {
  std::uint64_t instructions = 0;
  std::uint64_t distinct_instructions = 0;  // by address
  std::uint64_t conditionals = 0;
  std::uint64_t taken = 0;                        // of them
  std::map<std::string, std::uint64_t> branches;  // transfers by class_name()
  std::map<std::string, std::uint64_t> events;    // by kind_name()
  std::map<std::string, std::uint64_t> gaps;      // by reason_name()
  std::uint64_t first_time = 0, last_time = 0;    // in the thread's clock units; 0 unknown
  std::vector<FunctionStats> functions;           // most instructions first
};

// Takes time in proportion to the records of the range. REQUIRES: a range of the history.
HistoryStats make_stats(const History& history, Symbolizer& symbols, Range range);

}  // namespace tailtrace
