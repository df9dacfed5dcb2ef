// Which thread a CPU executed when, by the side-band records of an event that watches threads on
// that CPU: a thread's SWITCH in and the SWITCH out behind it enclose one slot. Where a record is
// missing, a slot ends where the next one begins, or begins where the last one ended; where several
// may be, the time between is no thread's.
//
// Threading: pure functions over values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"

namespace tailtrace::perf {

struct CpuSlot {
  ThreadId thread;               // tid 0: none, the CPU is idle; below 0: nobody knows
  std::uint64_t begin_ns = 0;    // 0: it ran already when the records begin
  std::uint64_t end_ns = ~0ull;  // the greatest: it still runs
  bool thread_ended = false;     // there
};

struct CpuSlots {
  std::vector<CpuSlot> slots;  // by time; none overlaps another

  // The slot that something belongs to which the CPU did at this time, to user code: what lies
  // between two slots was done on the way into the next one. Null when none is known.
  const CpuSlot* at(std::uint64_t time_ns) const;

  // For records of which the oldest were overwritten: a slot whose begin is not among them is left
  // out. Returns the time from which on all is known; the greatest when nothing is.
  std::uint64_t forget_before_first_switch();
};

// Finds the slots of one CPU among its records, which come in the order of time; of these it looks
// at SWITCH and LOST.
class CpuSlotFinder {
 public:
  void add(const ParsedRecord& record);
  CpuSlots take() { return std::move(found_); }

 private:
  void add_unknown(std::uint64_t end_ns);

  CpuSlots found_;
  bool open_ = false;          // the newest slot has not ended
  std::uint64_t missing_ = 0;  // records, since the newest SWITCH
};

// `records` are in the order of time. Errors: kBadInput for a record that cannot be read.
Result<CpuSlots> find_cpu_slots(const RecordList& records, const RecordFormat& format);

}  // namespace tailtrace::perf
