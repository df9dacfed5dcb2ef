// Generated traces, whole: whether the records of the fast path and the code give what was
// executed, instruction by instruction. A generator writes down the executed blocks beside each
// trace (PREFIX.truth).
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {

struct GeneratedTruth {
  std::uint64_t blocks = 0;  // that were executed and found
  std::string problem;       // empty: all were, and nothing else
};

// Nothing when there is no PREFIX.truth.
std::optional<GeneratedTruth> check_generated(const std::string& prefix, const PtInput& input);

}  // namespace tailtrace::pt
