#include "plugin/engines/perf/sideband.h"

#include <x86intrin.h>

namespace tailtrace::perf {
namespace {

// A mapping takes some 150 bytes: a hundred of them between two looks.
constexpr std::uint64_t kSidebandRing_bytes = 16u << 10;
constexpr std::uint64_t kFields = kSampleTid | kSampleTime;

perf_event_attr sideband_attr(Sideband::Inherit inherit) {
  perf_event_attr attr = plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attr.sample_type = kFields;
  attr.sample_id_all = 1;
  attr.mmap = attr.mmap2 = 1;
  attr.build_id = 1;
  attr.comm = attr.comm_exec = 1;
  attr.task = 1;
  attr.write_backward = 1;
  attr.inherit = inherit != Sideband::Inherit::kNothing;
  attr.inherit_thread = inherit == Sideband::Inherit::kThreads;
  return attr;
}

}  // namespace

Result<void> Sideband::watch(Target target, Inherit inherit) {
  perf_event_attr attr = sideband_attr(inherit);
  auto event = Event::open(*kernel_, Purpose::kSideband, attr, target);
  if (!event && event.error().code == ErrorCode::kUsage) {
    attr.build_id = 0;  // Linux 5.12 and later
    event = Event::open(*kernel_, Purpose::kSideband, attr, target);
  }
  if (!event) return fail(std::move(event.error()));
  auto ready = events_.empty() ? event->map_ring(kSidebandRing_bytes, Event::WhenFull::kOverwrite)
                               : event->write_into(events_.front());
  if (!ready) return ready;
  events_.push_back(std::move(*event));
  return {};
}

Result<std::vector<ParsedRecord>> Sideband::take() {
  std::vector<ParsedRecord> told;
  if (events_.empty()) return told;
  auto ring = read_still(events_.front());
  if (!ring) return fail(std::move(ring.error()));
  const RecordList& records = ring->records;
  for (std::size_t i = first_of_newest(records, seen_head_ - ring->head); i < records.size(); ++i) {
    auto record = parse_record(records[i], {kFields, true, 0, 0});
    if (!record) return fail(std::move(record.error()));
    told.push_back(std::move(*record));
  }
  seen_head_ = ring->head;
  return told;
}

std::optional<TimeConversion> Sideband::clock() const {
  if (events_.empty()) return std::nullopt;
  auto clock = events_.front().time_conversion();
  return clock && clock->mult != 0 ? clock : std::nullopt;
}

std::uint64_t Sideband::now() const { return clock() ? __rdtsc() : 0; }

std::uint64_t Sideband::time_of(const ParsedRecord& record) const {
  auto conversion = clock();
  return conversion && record.id.time_ns ? conversion->to_tsc(*record.id.time_ns) : 0;
}

}  // namespace tailtrace::perf
