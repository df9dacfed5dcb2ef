// SegmentCounter: what a SegmentReader may be as well: one that knows what a segment would add to a
// history without making its records, which takes less time than they do.
//
// Threading: as SegmentReader.
#pragma once

#include <cstdint>
#include <optional>

#include "decoder/history/segment_source.h"

namespace tailtrace {

struct SegmentCount {
  std::uint64_t items = 0;    // instructions; there is no gap
  std::uint64_t records = 0;  // without a seam
  bool has_seam = false;
};

class SegmentCounter {
 public:
  virtual ~SegmentCounter() = default;

  // What read() would find; nothing when only reading it tells. Then read() takes less time.
  // REQUIRES: as read().
  virtual std::optional<SegmentCount> count(Extent extent) = 0;
};

}  // namespace tailtrace
