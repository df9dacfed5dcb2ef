// Where the trace in an overwriting AUX area is not whole, as the AUX records in the event's data
// ring tell: the kernel writes one whenever the thread leaves its CPU, with flags.
//
// Threading: pure functions over values.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"

namespace tailtrace::perf {

// Something is missing before the byte that stands so many bytes before the head.
struct AuxHole {
  std::uint64_t before_head_bytes = 0;
  std::uint64_t flags = 0;  // AuxFlags: truncated, partial, collision; one of them at least

  friend bool operator==(const AuxHole&, const AuxHole&) = default;
};

// The holes that are still in the area, oldest first. `records` are the newest of the data ring
// from `first` on; `capacity_bytes` is what of the area is ever written. An area that went round
// between two records does not tell: then a hole may be named that was overwritten since.
// Errors: kBadInput for a record that cannot be read.
Result<std::vector<AuxHole>> find_aux_holes(const RecordList& records, std::size_t first,
                                            const RecordFormat& format,
                                            std::uint64_t capacity_bytes, std::uint64_t head);

}  // namespace tailtrace::perf
