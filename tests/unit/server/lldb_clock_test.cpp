#include "plugin/server/lldb/lldb_clock.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

// A wall clock that somebody sets back an hour again and again.
std::uint64_t set_back_ns() {
  static std::uint64_t now_ns = 1ull << 60;
  return now_ns -= 3'600'000'000'000;
}

TEST(LldbClock, CountsOnWhenTheWallClockIsSet) {
  const LldbClock clock, moved(&set_back_ns);
  for (int i = 0; i < 2; ++i) {
    const perf::TimeConversion time = clock.conversion(), other = moved.conversion();
    EXPECT_EQ(time.shift, other.shift);
    EXPECT_NEAR(time.mult, other.mult, 0.1 * time.mult);
  }
  // Where it begins was looked at once.
  EXPECT_LT(moved.conversion().zero_ns, std::uint64_t{1} << 60);
}

}  // namespace
}  // namespace tailtrace
