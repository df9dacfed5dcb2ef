#include "plugin/engines/perf/aux_event.h"

namespace tailtrace::perf {
namespace {

// A record of 32 bytes whenever the thread leaves its CPU: some hundreds of those.
constexpr std::uint64_t kTroubleRing_bytes = 16u << 10;

}  // namespace

Result<Event> open_aux_event(Kernel& kernel, Purpose purpose, perf_event_attr attr, Target target,
                             std::uint64_t size_bytes) {
  attr.write_backward = 1;
  auto event = Event::open(kernel, purpose, attr, target);
  if (!event) return event;
  if (auto ok = event->map_ring(kTroubleRing_bytes, Event::WhenFull::kOverwrite); !ok)
    return fail(std::move(ok.error()));
  if (auto got = event->map_aux(size_bytes, Event::WhenFull::kOverwrite); !got)
    return fail(std::move(got.error()));
  return event;
}

Result<std::vector<AuxHole>> read_aux_holes(const Event& event, std::uint64_t added_bytes,
                                            std::uint64_t capacity_bytes) {
  auto records = read_backward_ring(event.ring(), event.data_head());
  if (!records) return fail(std::move(records.error()));
  return find_aux_holes(*records, first_of_newest(*records, added_bytes), RecordFormat{},
                        capacity_bytes, event.aux_head());
}

}  // namespace tailtrace::perf
