#include "decoder/perf/cpu_slots.h"

#include <algorithm>

namespace tailtrace::perf {

const CpuSlot* CpuSlots::at(std::uint64_t time_ns) const {
  // The first that had not ended by then.
  auto slot = std::partition_point(slots.begin(), slots.end(),
                                   [&](const CpuSlot& s) { return s.end_ns < time_ns; });
  return slot == slots.end() ? nullptr : &*slot;
}

std::uint64_t CpuSlots::forget_before_first_switch() {
  if (!slots.empty() && slots.front().begin_ns == 0) slots.erase(slots.begin());
  return slots.empty() ? ~0ull : slots.front().begin_ns;
}

Result<CpuSlots> find_cpu_slots(const RecordList& records, const RecordFormat& format) {
  CpuSlots found;
  bool open = false;
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto record = parse_record(records[i], format);
    if (!record) return fail(std::move(record.error()));
    auto* change = std::get_if<SwitchEvent>(&record->body);
    if (change == nullptr || !record->id.thread || !record->id.time_ns) continue;
    const ThreadId thread = *record->id.thread;
    const std::uint64_t time_ns = *record->id.time_ns;
    const bool known = open && found.slots.back().thread == thread;
    if (change->out) {
      // The exit of a thread is told with its last SWITCH out, when it has no number any more.
      const bool gone = open && thread.tid <= 0;
      if (known || gone)
        found.slots.back().end_ns = time_ns;
      else if (found.slots.empty())
        found.slots.push_back({thread, 0, time_ns});
      open = false;
    } else if (!known) {
      if (open) found.slots.back().end_ns = time_ns;
      found.slots.push_back({thread, time_ns, ~0ull});
      open = true;
    }
  }
  return found;
}

}  // namespace tailtrace::perf
