// Sideband: what threads do to their code and to themselves, as the kernel tells it: code that is
// mapped, names, threads and processes that are made and end. The records have an overwriting ring
// of their own, where no sample and no switch can overwrite them.
//
// Threading: one thread at a time; the watched ones run meanwhile.
#pragma once

#include <vector>

#include "decoder/perf/clock.h"
#include "decoder/perf/events.h"
#include "plugin/engines/perf/event.h"

namespace tailtrace::perf {

class Sideband {
 public:
  enum class Inherit { kNothing, kThreads, kProcesses };

  explicit Sideband(Kernel& kernel) : kernel_(&kernel) {}

  // Watches a thread, and what it makes from now on. All targets of one Sideband name one CPU
  // (there may be several), or there is one target only.
  // Errors: all that explain() tells.
  Result<void> watch(Target target, Inherit inherit = Inherit::kNothing);

  // What was told since the last call, by time, each with who and when.
  // Errors: kBadInput, kSystem when the ring cannot be read.
  Result<std::vector<ParsedRecord>> take();

  // From the hardware's clock to that of the records; nothing where the kernel offers none.
  std::optional<TimeConversion> clock() const;

  // The hardware's clock now, as far as its times can be compared with those of records; else 0.
  std::uint64_t now() const;

  // The hardware's time of a record; 0 where there is no clock.
  std::uint64_t time_of(const ParsedRecord& record) const;

 private:
  Kernel* kernel_;
  std::vector<Event> events_;  // the first has the ring
  std::uint64_t seen_head_ = 0;
};

}  // namespace tailtrace::perf
