#include "decoder/bts/area_growth.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder/perf/aux_area.h"

namespace tailtrace::bts {
namespace {

using perf::kBtsRecordSize_bytes;

// An area as the hardware writes it; it knows what really happened.
struct CountedArea {
  explicit CountedArea(std::size_t records) : bytes(records * kBtsRecordSize_bytes) {}
  void write(std::uint64_t from) {
    std::uint64_t record[3] = {from, from + 1, 0};
    std::memcpy(bytes.data() + head, record, sizeof record);
    head = (head + sizeof record) % bytes.size();
    ++written;
  }
  std::size_t capacity() const { return bytes.size() / kBtsRecordSize_bytes; }
  Bytes bytes;
  std::uint64_t head = 0;
  std::size_t written = 0;
};

Growth growth(const CountedArea& before, const CountedArea& after) {
  return growth_since(before.bytes, before.head, after.bytes, after.head);
}

TEST(AreaGrowth, OfAnAreaThatWasNeverFullIsKnown) {
  CountedArea area(10);
  for (int i = 0; i < 3; ++i) area.write(7);
  CountedArea before = area;
  for (int i = 0; i < 6; ++i) area.write(7);
  EXPECT_EQ(growth(before, area), Growth::kContinued);
  EXPECT_EQ(growth(area, area), Growth::kContinued);
}

TEST(AreaGrowth, OfALoopThatFilledTheAreaIsNotKnown) {
  CountedArea area(10);
  for (int i = 0; i < 25; ++i) area.write(7);
  CountedArea before = area;
  EXPECT_EQ(growth(before, area), Growth::kUndecided);
  area.write(7);
  EXPECT_EQ(growth(before, area), Growth::kUndecided);
  for (int i = 0; i < 20; ++i) area.write(7);
  EXPECT_EQ(growth(before, area), Growth::kUndecided) << "it went round twice and shows nothing";
}

TEST(AreaGrowth, LittleThatIsLeftProvesNothing) {
  CountedArea area(10);
  for (std::uint64_t i = 0; i < 25; ++i) area.write(i);
  CountedArea before = area;
  for (std::uint64_t i = 0; i < 4; ++i) area.write(100 + i);
  EXPECT_EQ(growth(before, area), Growth::kContinued);
  for (std::uint64_t i = 0; i < 4; ++i) area.write(200 + i);
  EXPECT_EQ(growth(before, area), Growth::kUndecided);
  for (std::uint64_t i = 0; i < 4; ++i) area.write(300 + i);
  EXPECT_EQ(growth(before, area), Growth::kWentRound);
}

// Whatever the program is, in areas of a page and more: what is said to go on has lost nothing.
TEST(AreaGrowth, NeverClaimsWhatWasOverwritten) {
  std::mt19937 random(5);
  std::size_t continued = 0, rounds = 0;
  for (int run = 0; run < 1000; ++run) {
    CountedArea area(170 + random() % 60);
    const std::size_t period = 1 + random() % (random() % 2 ? 4 : 3 * area.capacity());
    std::vector<std::uint64_t> loop(period);
    for (auto& from : loop) from = random() % 3;
    std::size_t at = 0;
    auto execute = [&](std::size_t branches) {
      // Loops that are left now and then: what a program does is not all the same.
      for (; branches > 0; --branches) area.write(loop[at++ % period] + 8 * (random() % 40 == 0));
    };
    execute(random() % (3 * area.capacity()));
    for (int stop = 0; stop < 8; ++stop) {
      CountedArea before = area;
      execute(random() % (3 * area.capacity()));
      const bool lost = area.written - before.written >= area.capacity();
      const Growth told = growth(before, area);
      EXPECT_TRUE(told != Growth::kContinued || !lost);
      EXPECT_TRUE(told != Growth::kWentRound || lost);
      continued += told == Growth::kContinued;
      rounds += told == Growth::kWentRound;
    }
  }
  EXPECT_GT(continued, 500u);
  EXPECT_GT(rounds, 500u);
}

}  // namespace
}  // namespace tailtrace::bts
