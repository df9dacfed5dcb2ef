// A million hits of a hardware breakpoint in another process, on the real kernel: none is missed.
#include <gtest/gtest.h>

#include "plugin/engines/perf/breakpoints.h"
#include "tests/support/child.h"
#include "tests/support/debug_registers.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kHits = 1'000'000;
constexpr std::uint64_t kFirstArgument = 1 << 5;  // asm/perf_regs.h: PERF_REG_X86_DI

__attribute__((noinline, noclone)) void marker(std::uint64_t i) {
  __asm__ volatile("" ::"r"(i) : "memory");
}

TEST(Marker, CountsAMillionHitsExactly) {
  if (std::string why = no_debug_registers(); !why.empty()) GTEST_SKIP() << why;
  Child child({[] {
    for (std::uint64_t i = 0; i < kHits; ++i) marker(i);
  }});
  BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&marker)};
  spec.registers = kFirstArgument;
  auto log = Marker::open(real_kernel(), child.pid(), spec, 65536);
  ASSERT_TRUE(log) << log.error().to_string();
  ASSERT_TRUE(child.run());
  auto read = log->read(~0ull);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->count, kHits);
  ASSERT_EQ(read->hits.size(), 65536u / 56);
  for (std::size_t i = 0; i < read->hits.size(); ++i) {
    std::uint64_t number = kHits - read->hits.size() + i;
    ASSERT_EQ(read->hits[i].number, number);
    ASSERT_EQ(read->hits[i].registers, std::vector<std::uint64_t>{number});
  }
}

}  // namespace
}  // namespace tailtrace::perf
