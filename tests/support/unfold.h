// Unfolds records into the instructions they stand for, by nothing but the code image: the tests'
// own reading of RECORD.md, independent of the history.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/history/snapshot.h"

namespace tailtrace {

struct Unfolded {
  std::vector<std::uint64_t> executed;  // addresses, oldest first
  std::string problem;                  // where records and code contradict each other; or empty
};

// The instructions between the snapshot's first record and its end. With `with_attempts`, the
// instruction at which a signal of the kind that instructions raise came (SIGSEGV, SIGILL, ...) is
// listed as well: a stepper sees it begin.
Unfolded unfold(const ThreadSnapshot& snapshot, bool with_attempts);

}  // namespace tailtrace
