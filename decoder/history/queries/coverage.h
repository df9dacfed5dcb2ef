// Coverage: which source lines were executed in histories, and how often.
//
// A line was executed as often as the instruction of it that was executed most. Where a compiler
// has put a line into several functions, or in several places of one, those are added up, and so
// are histories; what the child of a fork has of its parent's past is left out. Lines that were not
// executed are known of the translation units that anything of was executed.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>

#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

struct BranchCoverage {
  std::uint64_t taken = 0;
  std::uint64_t not_taken = 0;
};

struct LineCoverage {
  std::uint64_t times = 0;
  std::map<std::uint64_t, BranchCoverage> branches;  // conditional ones, by address in the file
};

struct FunctionCoverage {
  unsigned line = 0;  // of its first instruction
  std::uint64_t times =
      0;  // at least 1: of what was running before the history begins, nobody knows
};

struct FileCoverage {
  std::map<unsigned, LineCoverage> lines;
  std::map<std::string, FunctionCoverage> functions;

  std::size_t lines_executed() const;
};

class Coverage {
 public:
  // REQUIRES: a range of the history.
  void add(const History& history, Symbolizer& symbols, Range range);

  const std::map<std::string, FileCoverage>& files() const { return files_; }

  std::uint64_t instructions() const { return instructions_; }
  // Of them, how many have no source line.
  std::uint64_t without_line() const { return without_line_; }

 private:
  std::map<std::string, FileCoverage> files_;
  std::uint64_t instructions_ = 0;
  std::uint64_t without_line_ = 0;
};

}  // namespace tailtrace
