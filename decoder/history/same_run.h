// SameRun: what tells one straight run of instructions from another. Runs that are the same execute
// the same instructions, so that whatever is asked of each instruction is asked once.
//
// Threading: values.
#pragma once

#include "decoder/history/runs.h"

namespace tailtrace {

struct SameRun {
  Address start;
  Address from;  // of the branch at its end; 0: none
  std::uint64_t shown = 0;
  Epoch epoch;

  friend bool operator==(const SameRun&, const SameRun&) = default;
};

struct HashSameRun {
  std::size_t operator()(const SameRun& run) const {
    std::uint64_t hash = run.start.value * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ run.from.value ^ (std::uint64_t{run.epoch.value} << 48)) * 0xff51afd7ed558ccdull;
    return hash ^ run.shown;
  }
};

}  // namespace tailtrace
