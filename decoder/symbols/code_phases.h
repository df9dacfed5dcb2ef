// code_phases: a history, cut where other files came in the place of those that were mapped. In a
// phase the code of each address is of one file at most.
//
// Threading: values; a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/history/snapshot.h"

namespace tailtrace {

struct CodePhase {
  Epoch first;                        // of the code
  std::vector<BranchRecord> records;  // they begin and end with an edge where they were cut
};

// Of the newest `instructions`, oldest first; at least one. Whole records, so a few more may come.
std::vector<CodePhase> code_phases(const ThreadSnapshot& snapshot, std::uint64_t instructions);
// The same. The records of a snapshot that is one phase become that phase's, and are not copied.
std::vector<CodePhase> code_phases(ThreadSnapshot&& snapshot, std::uint64_t instructions);

}  // namespace tailtrace
