#include "plugin/server/lldb/lldb_clock.h"

#include <time.h>
#include <x86intrin.h>

#include <algorithm>

namespace tailtrace {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kLeast_ns = 20'000'000;
constexpr int kShift = 31;

std::uint64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

LldbClock::LldbClock(std::uint64_t (*wall_ns)()) : first_(look()), first_wall_ns_(wall_ns()) {}

std::uint64_t LldbClock::system_wall_ns() { return now_ns(CLOCK_REALTIME); }

// The tightest of several looks: one may be interrupted between the two clocks.
LldbClock::Sample LldbClock::look() {
  Sample best;
  std::uint64_t best_width = ~0ull;
  for (int i = 0; i < 5; ++i) {
    std::uint64_t before = __rdtsc(), ns = now_ns(CLOCK_MONOTONIC), after = __rdtsc();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best = {before + best_width / 2, ns};
  }
  return best;
}

perf::TimeConversion LldbClock::conversion() const {
  Sample now = look();
  if (now.ns < first_.ns + kLeast_ns) {
    timespec rest{0, static_cast<long>(kLeast_ns)};
    ::nanosleep(&rest, nullptr);
    now = look();
  }
  perf::TimeConversion result;
  result.shift = kShift;
  // A counter that does not count gives a tick for a nanosecond.
  result.mult = 1u << kShift;
  if (now.ns > first_.ns && now.ticks > first_.ticks) {
    auto mult =
        (static_cast<unsigned __int128>(now.ns - first_.ns) << kShift) / (now.ticks - first_.ticks);
    result.mult = static_cast<std::uint32_t>(
        std::clamp<unsigned __int128>(mult, 1, ~static_cast<std::uint32_t>(0)));
  }
  result.zero_ns = first_wall_ns_ - result.to_ns(first_.ticks);
  return result;
}

}  // namespace tailtrace
