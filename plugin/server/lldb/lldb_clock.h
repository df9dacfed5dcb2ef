// LldbClock: how the times of records, which are the processor's time stamp counter, become
// nanoseconds of this machine's clock; in the form that LLDB asks for.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>

#include "decoder/perf/clock.h"

namespace tailtrace {

class LldbClock {
 public:
  // Looks at all clocks. `wall_ns`: since 1970.
  explicit LldbClock(std::uint64_t (*wall_ns)() = &system_wall_ns);

  // From the time between then and now: good to some 0.01 % after a tenth of a second. Waits a
  // fiftieth when it is asked before. The wall clock may be set meanwhile: it was looked at once.
  perf::TimeConversion conversion() const;

 private:
  struct Sample {
    std::uint64_t ticks = 0;
    std::uint64_t ns = 0;  // of a clock that nobody sets
  };
  static Sample look();
  static std::uint64_t system_wall_ns();

  Sample first_;
  std::uint64_t first_wall_ns_;
};

}  // namespace tailtrace
