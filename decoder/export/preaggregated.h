// Pre-aggregated profile: branches and straight runs with their counts, one file's of a process,
// for compilers and linkers. Addresses are hexadecimal, the file's own, as objdump shows them.
//
// BOLT's `perf2bolt -pa` reads lines of these:
//
//     B FROM TO COUNT MISPREDICTED      a taken branch
//     F FIRST LAST COUNT                instructions that ran straight, both included
//
// AutoFDO's tools read three lists, each behind a line with its length:
//
//     FIRST-LAST:COUNT                  straight runs
//     ADDRESS:COUNT                     samples without branches: none
//     FROM->TO:COUNT                    taken branches
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "decoder/export/code_runs.h"
#include "decoder/export/sinks.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

class PreaggregatedProfile {
 public:
  // Of the file with that path, or whose path ends so.
  explicit PreaggregatedProfile(std::string file) : file_(std::move(file)) {}

  // Branches that lead out of the file, or into it, are left out.
  void add(const CodeRuns& all, Symbolizer& symbols);

  // Nothing of the file was executed.
  bool empty() const { return runs_.empty(); }
  void list(const TextSink& line) const;  // as BOLT has it
  void list_for_autofdo(const TextSink& line) const;

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;

  std::optional<std::uint64_t> place_of(Symbolizer& symbols, Address address, Epoch when) const;

  std::string file_;
  std::map<Place, BranchCount> branches_;
  std::map<Place, std::uint64_t> runs_;
};

}  // namespace tailtrace
