// Which thread a processor executed when, out of perf's records of context switches.
#include "decoder/bundle/context_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailtrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Half a nanosecond a tick, from 1000 ns on.
constexpr perf::TimeConversion kClock{1000, 1, 1};
constexpr ThreadId kOne{10, 11}, kOther{10, 12};

void put(Bytes& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

class Switches {
 public:
  Switches& in(ThreadId thread, std::uint64_t tsc) { return add(thread, tsc, 0); }
  Switches& out(ThreadId thread, std::uint64_t tsc) { return add(thread, tsc, 1 << 13); }
  Switches& record(std::uint32_t type, std::uint16_t misc, std::size_t size) {
    put(bytes, type, 4);
    put(bytes, misc, 2);
    put(bytes, size, 2);
    bytes.resize(bytes.size() + size - 8);
    return *this;
  }

  std::vector<CpuExecution> read() const {
    auto found = read_context_switches(bytes, kClock);
    EXPECT_TRUE(found) << found.error().to_string();
    return found ? *found : std::vector<CpuExecution>{};
  }
  std::string why() const {
    auto found = read_context_switches(bytes, kClock);
    return found ? "it was read" : found.error().why;
  }

  Bytes bytes;

 private:
  Switches& add(ThreadId thread, std::uint64_t tsc, std::uint16_t misc) {
    put(bytes, 15, 4);
    put(bytes, misc, 2);
    put(bytes, 32, 2);
    put(bytes, 0, 8);
    put(bytes, static_cast<std::uint32_t>(thread.pid), 4);
    put(bytes, static_cast<std::uint32_t>(thread.tid), 4);
    put(bytes, kClock.to_ns(tsc), 8);
    return *this;
  }
};

TEST(ContextSwitches, ASwitchInAndTheSwitchOutBehindItAreAnExecution) {
  Switches switches;
  switches.in(kOne, 100).out(kOne, 200).in(kOther, 202).out(kOther, 300);
  EXPECT_THAT(switches.read(), ElementsAre(CpuExecution{kOne, 100, 200, true, true},
                                           CpuExecution{kOther, 202, 300, true, true}));
}

TEST(ContextSwitches, TheFirstAndTheLastMayHaveNoCounterpart) {
  Switches switches;
  switches.out(kOne, 100).in(kOther, 200);
  EXPECT_THAT(switches.read(), ElementsAre(CpuExecution{kOne, 0, 100, false, true},
                                           CpuExecution{kOther, 200, ~0ull, true, false}));
}

TEST(ContextSwitches, AMissingOneIsBoundedByItsNeighbours) {
  Switches ins;
  ins.in(kOne, 100).in(kOther, 200).out(kOther, 300);
  EXPECT_THAT(ins.read(), ElementsAre(CpuExecution{kOne, 100, 199, true, false},
                                      CpuExecution{kOther, 200, 300, true, true}));
  Switches outs;
  outs.in(kOne, 100).out(kOne, 200).out(kOther, 300);
  EXPECT_THAT(outs.read(), ElementsAre(CpuExecution{kOne, 100, 200, true, true},
                                       CpuExecution{kOther, 201, 300, false, true}));
  Switches both;
  both.in(kOne, 100).out(kOther, 300);
  EXPECT_THAT(both.read(), ElementsAre(CpuExecution{kOne, 100, 299, true, false},
                                       CpuExecution{kOther, 101, 300, false, true}));
}

TEST(ContextSwitches, RecordsOfOtherKindsAreSkipped) {
  Switches switches;
  switches.record(3, 0, 16).in(kOne, 100).record(14, 1 << 13, 24).out(kOne, 200).record(99, 0, 8);
  EXPECT_THAT(switches.read(), ElementsAre(CpuExecution{kOne, 100, 200, true, true}));
  EXPECT_THAT(Switches().read(), ElementsAre());
}

TEST(ContextSwitches, AClockThatBeganBeforeTheEpochIsRead) {
  Switches switches;
  switches.in(kOne, 100).out(kOne, 5000);
  auto found = read_context_switches(switches.bytes, {~0ull - 99, 1, 0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().begin, 1050u + 100);
}

TEST(ContextSwitches, WhatIsNoRecordIsAnErrorAndNeverACrash) {
  Switches back;
  EXPECT_THAT(back.in(kOne, 200).out(kOne, 200).why(), HasSubstr("byte 32 is not later"));
  Switches empty;
  EXPECT_THAT(empty.in(kOne, 100).record(15, 0, 8).why(), HasSubstr("byte 32 is too short"));
  Switches none;
  none.in(kOne, 100);
  none.bytes.resize(none.bytes.size() + 12);
  EXPECT_THAT(none.why(), HasSubstr("byte 32 has no size"));
  Switches cut;
  cut.in(kOne, 100).out(kOne, 200);
  for (std::size_t size = 1; size < cut.bytes.size(); ++size) {
    if (size == 32) continue;
    auto found = read_context_switches(ByteSpan(cut.bytes).first(size), kClock);
    ASSERT_FALSE(found) << size;
    EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
  }
  EXPECT_FALSE(read_context_switches(cut.bytes, {0, 0, 0}));
}

}  // namespace
}  // namespace tailtrace
