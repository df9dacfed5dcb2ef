#include "plugin/engines/perf/branch_events.h"

#include <algorithm>

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kDefaultStackRing_bytes = 256u << 10;
constexpr std::uint64_t kDefaultDrainedArea_bytes = 4u << 20;
// A sample comes some branches late.
constexpr std::uint64_t kSkid_branches = 8;

std::uint64_t period_of(const PerfConfig& config) {
  return std::max<std::uint64_t>(config.lbr_period, 2);
}

}  // namespace

perf_event_attr branch_sample_attr() {
  perf_event_attr attr = plain_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  attr.sample_period = 1;
  attr.sample_type = kSampleIp | kSampleAddr;
  attr.exclude_idle = 1;
  return attr;
}

perf_event_attr branch_stack_attr(const PerfConfig& config) {
  perf_event_attr attr = plain_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  attr.sample_period = period_of(config);
  attr.sample_type = kSampleIp | kSampleBranchStack;
  attr.branch_sample_type = kBranchUser | kBranchAny;
  attr.write_backward = 1;
  return attr;
}

std::uint64_t most_between_stacks(const PerfConfig& config) {
  return period_of(config) + kSkid_branches;
}

std::uint64_t buffer_for(const PerfConfig& config, std::uint64_t record_bytes) {
  std::uint64_t wanted =
      config.buffer_bytes != 0 ? config.buffer_bytes : config.records.ring_records * record_bytes;
  return mappable_size(wanted);
}

std::uint64_t stack_buffer_for(const PerfConfig& config) {
  return config.buffer_bytes != 0 ? config.buffer_bytes : kDefaultStackRing_bytes;
}

std::uint64_t drained_buffer_for(const PerfConfig& config) {
  return mappable_size(config.buffer_bytes != 0 ? config.buffer_bytes : kDefaultDrainedArea_bytes);
}

}  // namespace tailtrace::perf
