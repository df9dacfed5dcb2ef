#include "decoder/perf/clock.h"

#include <cassert>

#include "decoder/perf/abi.h"

namespace tailtrace::perf {

__extension__ typedef unsigned __int128 Wide;

std::uint64_t TimeConversion::to_ns(std::uint64_t tsc) const {
  return zero_ns + static_cast<std::uint64_t>((static_cast<Wide>(tsc) * mult) >> shift);
}

std::uint64_t TimeConversion::to_tsc(std::uint64_t ns) const {
  assert(mult != 0);
  Wide scaled = static_cast<Wide>(ns - zero_ns) << shift;
  return static_cast<std::uint64_t>((scaled + mult - 1) / mult);
}

std::optional<TimeConversion> read_time_conversion(ByteSpan page) {
  assert(page.size() >= kPageUsedSize_bytes);
  if ((load<std::uint64_t>(page, kPageCapabilities) & kCapUserTimeZero) == 0) return std::nullopt;
  TimeConversion conversion{load<std::uint64_t>(page, kPageTimeZero),
                            load<std::uint32_t>(page, kPageTimeMult),
                            load<std::uint16_t>(page, kPageTimeShift)};
  if (conversion.mult == 0 || conversion.shift >= 64) return std::nullopt;
  return conversion;
}

}  // namespace tailtrace::perf
