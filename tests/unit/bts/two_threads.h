// Two threads of a process that take turns on a CPU.
#pragma once

#include <vector>

#include "decoder/bts/cpu_branches.h"

namespace tailtrace::bts {

inline constexpr ThreadId kA{1, 10}, kB{1, 11};

// Where the branches of a batch came from.
inline std::vector<std::uint64_t> sources(const Batch& batch) {
  std::vector<std::uint64_t> from;
  for (const Branch& branch : batch.branches) from.push_back(branch.from.value);
  return from;
}

}  // namespace tailtrace::bts
