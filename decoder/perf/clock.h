// The processor's time stamp counter and perf's clock, one into the other, by the values that the
// kernel keeps in the control page of every mapped event.
//
// Threading: values.
#pragma once

#include <cstdint>
#include <optional>

#include "decoder/base/bytes.h"

namespace tailtrace::perf {

// ns = zero + tsc * mult / 2^shift, in 128 bits so that nothing is cut.
// Source: the comment at time_zero in include/uapi/linux/perf_event.h.
struct TimeConversion {
  std::uint64_t zero_ns = 0;
  std::uint32_t mult = 1;
  std::uint16_t shift = 0;

  std::uint64_t to_ns(std::uint64_t tsc) const;
  // The first counter value of this nanosecond. REQUIRES: mult is not 0.
  std::uint64_t to_tsc(std::uint64_t ns) const;

  friend bool operator==(const TimeConversion&, const TimeConversion&) = default;
};

// The values of a control page that nobody writes meanwhile. Nothing when the kernel does not offer
// them: its clock is not the counter, as in most virtual machines. REQUIRES: a page's first
// kPageUsedSize_bytes.
std::optional<TimeConversion> read_time_conversion(ByteSpan page);

}  // namespace tailtrace::perf
