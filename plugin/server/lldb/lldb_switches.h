// The switches of a processor that ran one thread and nothing else, as LLDB reads those of perf.
//
// Threading: a pure function.
#pragma once

#include <cstdint>
#include <string>

#include "decoder/base/types.h"
#include "decoder/perf/clock.h"

namespace tailtrace {

// Two records of kind PERF_RECORD_SWITCH_CPU_WIDE, to the thread and away from it, around the
// ticks of [oldest, newest]; none when there are no ticks.
std::string lldb_switches(ThreadId thread, std::uint64_t oldest, std::uint64_t newest,
                          const perf::TimeConversion& conversion);

}  // namespace tailtrace
