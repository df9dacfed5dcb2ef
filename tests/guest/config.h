// How much the tests in the guest record.
//
// Threading: pure functions.
#pragma once

#include "plugin/engines/perf/perf_engine.h"

namespace tailtrace::perf {

// A buffer of that size, and room for a million records beside it.
inline PerfConfig config_of(std::uint64_t buffer_bytes) {
  PerfConfig config;
  config.records.ring_records = 1 << 20;
  config.buffer_bytes = buffer_bytes;
  return config;
}

}  // namespace tailtrace::perf
