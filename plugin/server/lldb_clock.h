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
  // Looks at both clocks.
  LldbClock();

  // From the time between then and now: good to some 0.01 % after a tenth of a second. Waits for
  // that long when it is asked before.
  perf::TimeConversion conversion() const;

 private:
  struct Sample {
    std::uint64_t ticks = 0;
    std::uint64_t ns = 0;  // since 1970
  };
  static Sample look();

  Sample first_;
};

}  // namespace tailtrace
