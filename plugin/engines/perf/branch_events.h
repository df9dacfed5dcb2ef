// The events that sample branches: every single one, or stacks of the last ones.
//
// Threading: pure functions.
#pragma once

#include "plugin/engines/perf/event.h"
#include "plugin/engines/perf/thread_recorder.h"

namespace tailtrace::perf {

// The kernel turns every single branch, with exactly these fields, into BTS.
perf_event_attr branch_sample_attr();
// A sample every PerfConfig::lbr_period branches, into a backward ring.
perf_event_attr branch_stack_attr(const PerfConfig& config);
// The most branches that can lie between two stacks.
std::uint64_t most_between_stacks(const PerfConfig& config);

// A ring for records of this size: as large as the user says, else for as many as are kept.
std::uint64_t buffer_for(const PerfConfig& config, std::uint64_t record_bytes);
// A ring for stacks.
std::uint64_t stack_buffer_for(const PerfConfig& config);
// An area that is read while it is written.
std::uint64_t drained_buffer_for(const PerfConfig& config);

}  // namespace tailtrace::perf
