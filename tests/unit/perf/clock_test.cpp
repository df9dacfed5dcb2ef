#include "decoder/perf/clock.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder/perf/abi.h"

namespace tailtrace::perf {
namespace {

Bytes page(std::uint64_t capabilities, std::uint16_t shift, std::uint32_t mult,
           std::uint64_t zero) {
  Bytes bytes(4096);
  std::memcpy(bytes.data() + kPageCapabilities, &capabilities, 8);
  std::memcpy(bytes.data() + kPageTimeShift, &shift, 2);
  std::memcpy(bytes.data() + kPageTimeMult, &mult, 4);
  std::memcpy(bytes.data() + kPageTimeZero, &zero, 8);
  return bytes;
}

TEST(Clock, IsReadFromTheControlPage) {
  auto conversion = read_time_conversion(page(kCapUserTimeZero, 10, 341, 1000));
  ASSERT_TRUE(conversion);
  EXPECT_EQ(*conversion, (TimeConversion{1000, 341, 10}));
}

TEST(Clock, IsNotKnownWhereTheKernelDoesNotOfferIt) {
  EXPECT_FALSE(read_time_conversion(page(0, 10, 341, 1000)));
  EXPECT_FALSE(read_time_conversion(page(kCapUserTimeZero, 10, 0, 1000)));
  EXPECT_FALSE(read_time_conversion(page(kCapUserTimeZero, 64, 341, 1000)));
}

TEST(Clock, AgreesWithTheKernelsFormula) {
  // The kernel's own way, which splits the counter so that 64 bits suffice.
  std::mt19937_64 random(5);
  for (int i = 0; i < 100000; ++i) {
    TimeConversion c{random() >> 4, static_cast<std::uint32_t>(random() % 0x3fffff + 1), 22};
    std::uint64_t tsc = random() >> (random() % 40 + 8);
    std::uint64_t high = tsc >> c.shift, low = tsc & ((1ull << c.shift) - 1);
    std::uint64_t expected = c.zero_ns + high * c.mult + ((low * c.mult) >> c.shift);
    ASSERT_EQ(c.to_ns(tsc), expected);
  }
}

TEST(Clock, GoesThereAndBack) {
  TimeConversion c{123456789, 699, 11};  // 3 GHz or so
  for (std::uint64_t tsc : {0ull, 1ull, 3000000000ull, 1ull << 50}) {
    std::uint64_t ns = c.to_ns(tsc);
    std::uint64_t back = c.to_tsc(ns);
    EXPECT_LE(back, tsc);
    EXPECT_EQ(c.to_ns(back), ns);
  }
}

}  // namespace
}  // namespace tailtrace::perf
