#include "decoder/perf/cpu_slots.h"

#include <algorithm>
#include <utility>

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
  if (const auto* lost = std::get_if<LostEvent>(&record.body))
    missing_ += lost->samples_only ? 0 : lost->count;
  auto* change = std::get_if<SwitchEvent>(&record.body);
  if (change == nullptr || !record.id.thread || !record.id.time_ns) return;
  const ThreadId thread = *record.id.thread;
  const std::uint64_t time_ns = *record.id.time_ns;
  std::vector<CpuSlot>& slots = found_.slots;
  const bool known = open_ && slots.back().thread == thread;
  // One that is missing is made up for.
  const bool is_doubtful = std::exchange(missing_, 0) > 1;
  if (change->out) {
    // The exit of a thread is told with its last SWITCH out, when it has no number any more.
    const bool gone = open_ && thread.tid <= 0;
    if (known || gone) {
      slots.back().end_ns = time_ns;
      slots.back().thread_ended = gone;
    } else if (open_ || is_doubtful) {
      add_unknown(time_ns);
    } else {
      slots.push_back({thread, slots.empty() ? 0 : slots.back().end_ns, time_ns});
    }
    open_ = false;
  } else {
    if (is_doubtful)
      add_unknown(std::max<std::uint64_t>(time_ns, 1) - 1);
    else if (open_)
      slots.back().end_ns = time_ns;
    slots.push_back({thread, time_ns, ~0ull});
    open_ = true;
  }
}

// Since the last record several threads may have been there, nobody knows which one when.
void CpuSlotFinder::add_unknown(std::uint64_t end_ns) {
  std::vector<CpuSlot>& slots = found_.slots;
  if (open_) slots.back().end_ns = slots.back().begin_ns;
  slots.push_back({{-1, -1}, slots.empty() ? 0 : slots.back().end_ns, end_ns});
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
