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

void CpuSlotFinder::add(const ParsedRecord& record) {
  auto* change = std::get_if<SwitchEvent>(&record.body);
  if (change == nullptr || !record.id.thread || !record.id.time_ns) return;
  const ThreadId thread = *record.id.thread;
  const std::uint64_t time_ns = *record.id.time_ns;
  std::vector<CpuSlot>& slots = found_.slots;
  const bool known = open_ && slots.back().thread == thread;
  if (change->out) {
    // The exit of a thread is told with its last SWITCH out, when it has no number any more.
    const bool gone = open_ && thread.tid <= 0;
    if (known || gone) {
      slots.back().end_ns = time_ns;
      slots.back().thread_ended = gone;
    } else if (slots.empty())
      slots.push_back({thread, 0, time_ns});
    open_ = false;
  } else if (!known) {
    if (open_) slots.back().end_ns = time_ns;
    slots.push_back({thread, time_ns, ~0ull});
    open_ = true;
  }
}

Result<CpuSlots> find_cpu_slots(const RecordList& records, const RecordFormat& format) {
  CpuSlotFinder finder;
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto record = parse_record(records[i], format);
    if (!record) return fail(std::move(record.error()));
    finder.add(*record);
  }
  return finder.take();
}

}  // namespace tailtrace::perf
