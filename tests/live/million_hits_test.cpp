// A million hits of hardware breakpoints in another process, on the real kernel: none is missed.
// All four registers wait for one instruction, so that each trap, which takes a virtual machine
// long, is four hits.
#include <gtest/gtest.h>

#include "plugin/engines/perf/breakpoints.h"
#include "tests/support/child.h"
#include "tests/support/debug_registers.h"

namespace tailtrace::perf {
namespace {

constexpr std::size_t kMarkers = 4;
constexpr std::uint64_t kHits = 1'000'000 / kMarkers;  // of each
constexpr std::size_t kRingBytes = 65536;
constexpr std::size_t kSampleBytes = 56;
constexpr std::uint64_t kFirstArgument = 1 << 5;  // asm/perf_regs.h: PERF_REG_X86_DI

__attribute__((noinline, noclone)) void marker(std::uint64_t i) {
  __asm__ volatile("" ::"r"(i) : "memory");
}

void expect_the_newest(const MarkerLog& log) {
  EXPECT_EQ(log.count, kHits);
  ASSERT_EQ(log.hits.size(), kRingBytes / kSampleBytes);
  for (std::size_t i = 0; i < log.hits.size(); ++i) {
    std::uint64_t number = kHits - log.hits.size() + i;
    ASSERT_EQ(log.hits[i].number, number);
    ASSERT_EQ(log.hits[i].registers, std::vector<std::uint64_t>{number});
  }
}

TEST(Marker, CountsAMillionHitsExactly) {
  if (std::string why = no_debug_registers(); !why.empty()) GTEST_SKIP() << why;
  Child child({[] {
    for (std::uint64_t i = 0; i < kHits; ++i) marker(i);
  }});
  BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&marker)};
  spec.registers = kFirstArgument;
  std::vector<Marker> markers;
  for (std::size_t i = 0; i < kMarkers; ++i) {
    auto one = Marker::open(real_kernel(), child.pid(), spec, kRingBytes);
    ASSERT_TRUE(one) << one.error().to_string();
    markers.push_back(std::move(*one));
  }
  ASSERT_TRUE(child.run());
  for (Marker& one : markers) {
    auto log = one.read(~0ull);
    ASSERT_TRUE(log) << log.error().to_string();
    expect_the_newest(*log);
  }
}

}  // namespace
}  // namespace tailtrace::perf
