// What the context switches of a processor tell: which thread it executed when.
//
// LLDB's bundles keep them as plain perf records, of which those of kind SWITCH_CPU_WIDE count
// (include/uapi/linux/perf_event.h, with sample_type TID | TIME and sample_id_all):
//
//      0        4      6      8              16         24         32
//      +--------+------+------+--------------+----------+----------+
//      | type 15| misc | size | other pid,tid| pid, tid | time, ns |   misc bit 13: switched out
//      +--------+------+------+--------------+----------+----------+
//
// Switches may be missing: the kernel drops some, and the first and last of a trace have no
// counterpart. What is not known of an execution then is bounded by its neighbours.
//
// Threading: pure functions; values.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/perf/clock.h"

namespace tailtrace {

// A processor executed a thread, from one switch to another. Times are of the TSC.
struct CpuExecution {
  ThreadId thread;
  std::uint64_t begin = 0;    // or, when that is not known, a time that is not later; 0: nothing is
  std::uint64_t end = ~0ull;  // or a time that is not earlier
  bool begin_known = false;
  bool end_known = false;

  // A time at which it was executed for sure.
  std::uint64_t known_time() const { return begin_known ? begin : end; }

  friend bool operator==(const CpuExecution&, const CpuExecution&) = default;
};

// In order of time. `clock` is that of the times. Errors: kBadInput for records that are none, or
// whose times do not grow.
Result<std::vector<CpuExecution>> read_context_switches(ByteSpan records,
                                                        const perf::TimeConversion& clock);

}  // namespace tailtrace
