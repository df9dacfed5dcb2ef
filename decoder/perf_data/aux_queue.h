// AuxQueue: the pieces of one AUX area put together again: what lies behind each other in one run,
// and what is missing in between.
//
// Threading: values; pure functions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "decoder/perf_data/file.h"

namespace tailtrace::perf {

// Trace without a break.
struct AuxRun {
  std::uint64_t offset_bytes = 0;  // of everything ever written into the area
  ByteSpan bytes;
  std::uint64_t lost_before = 0;  // AuxFlags: why there is a hole before it; 0: there is none
};

struct AuxQueue {
  std::int32_t tid = -1;  // as AuxPiece has them
  std::int32_t cpu = -1;
  std::vector<AuxRun> runs;
  std::vector<std::shared_ptr<const void>> owners;  // of bytes that are not the file's

  bool is_by_cpu() const { return cpu >= 0; }
};

// A hole that the kernel told of: what should come behind an offset is missing.
struct ToldHole {
  std::int32_t tid = -1, cpu = -1;
  std::uint64_t offset_bytes = 0;
  std::uint64_t flags = 0;  // AuxFlags
};

// One for each area. Where pieces show the same trace twice, as snapshots do, it is taken once.
// `is_snapshot`: a hole between pieces was overwritten; else the kernel dropped it.
std::vector<AuxQueue> join_pieces(std::span<const AuxPiece> pieces, std::span<const ToldHole> holes,
                                  bool is_snapshot);

}  // namespace tailtrace::perf
