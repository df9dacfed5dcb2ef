#include "decoder/bts/branch_list.h"

#include <gtest/gtest.h>

#include "decoder/bts/stack_join.h"
#include "decoder/record/branch_record.h"
#include "tests/unit/perf/ring_model.h"

namespace tailtrace::bts {
namespace {

void put(Bytes& area, std::size_t at, std::uint64_t from, std::uint64_t to) {
  std::memcpy(area.data() + at, &from, 8);
  std::memcpy(area.data() + at + 8, &to, 8);
}

TEST(BtsArea, HoldsTheNewestRecordsWhetherItWentRoundOrNot) {
  Bytes area(4096);  // 170 records and 16 bytes that are never written
  std::size_t position = 0;
  for (std::uint64_t n = 1; n <= 600; ++n) {
    put(area, position, 1000 + n, 2000 + n);
    position += 24;
    // Both drivers' habits: the head may stay at the end or be back at the beginning.
    std::uint64_t head = position;
    if (position == 170 * 24) position = 0;
    auto view = perf::order_aux_area(area, head, perf::AuxHead::kRecordOffset);
    ASSERT_TRUE(view);
    BranchList list = read_bts_area(*view, ~0ull);
    ASSERT_EQ(list.branches.size(), std::min<std::uint64_t>(n, 170));
    EXPECT_EQ(list.complete, n < 170);
    for (std::size_t i = 0; i < list.branches.size(); ++i)
      ASSERT_EQ(list.branches[i].from.value, 1000 + n - list.branches.size() + 1 + i);
    BranchList few = read_bts_area(*view, 5);
    ASSERT_EQ(few.branches.size(), std::min<std::uint64_t>(n, 5));
    EXPECT_EQ(few.branches.back().to.value, 2000 + n);
  }
}

TEST(BtsSamples, AreReadInOrderOfTime) {
  perf::RingModel model(8192, false);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    Bytes record(24);
    perf::RecordHeader header{perf::kRecordSample, 2, 24};
    std::memcpy(record.data(), &header, 8);
    put(record, 8, 0, 0);
    std::uint64_t from = n, to = n + 7;
    std::memcpy(record.data() + 8, &from, 8);
    std::memcpy(record.data() + 16, &to, 8);
    model.write(record);
  }
  auto records = perf::read_fixed_records(model.ring(), model.head(),
                                          {perf::kRecordSample, 0, kBtsSampleSize_bytes}, ~0ull);
  ASSERT_TRUE(records);
  BranchList list = read_bts_samples(*records);
  ASSERT_EQ(list.branches.size(), 341u);
  EXPECT_FALSE(list.complete);
  for (std::size_t i = 0; i < 341; ++i) {
    EXPECT_EQ(list.branches[i].from.value, 659 + i);
    EXPECT_EQ(list.branches[i].to.value, 666 + i);
  }
}

TEST(BranchStack, IsTurnedRoundAndKeepsItsFlags) {
  perf::Sample sample;
  sample.branches = {{{3}, {4}, true, false, true, true, 9},
                     {{1}, {2}, false, true, false, false, 0}};
  std::vector<Branch> branches = read_branch_stack(sample);
  ASSERT_EQ(branches.size(), 2u);
  EXPECT_EQ(branches[0], (Branch{{1}, {2}, 0}));
  EXPECT_EQ(branches[1], (Branch{{3}, {4}, kFlagMispredicted | kFlagInTransaction | kFlagAbort}));
}

std::vector<Branch> numbers(std::uint64_t first, std::uint64_t end) {
  std::vector<Branch> branches;
  for (; first < end; ++first) branches.push_back({{first}, {first + 1}, 0});
  return branches;
}

TEST(StackJoin, FindsTheOneWayInWhichStacksFit) {
  auto older = numbers(100, 116);
  for (std::size_t added = 0; added <= 15; ++added) {
    Join join = join_stacks(older, numbers(100 + added, 116 + added), 15);
    EXPECT_TRUE(join.exact);
    EXPECT_EQ(join.added, added);
  }
}

TEST(StackJoin, DoesNotGuessInALoop) {
  std::vector<Branch> loop(16, Branch{{1}, {2}, 0});
  EXPECT_FALSE(join_stacks(loop, loop, 8).exact);
  EXPECT_EQ(join_stacks(loop, loop, 8).added, 0u);
}

TEST(StackJoin, SeesAHoleAndShowsNothingTwice) {
  Join hole = join_stacks(numbers(0, 16), numbers(100, 116), 15);
  EXPECT_FALSE(hole.exact);
  EXPECT_EQ(hole.added, 16u);
  Join late = join_stacks(numbers(0, 16), numbers(12, 28), 8);
  EXPECT_FALSE(late.exact);
  EXPECT_EQ(late.added, 12u);
  EXPECT_FALSE(join_stacks(numbers(0, 16), numbers(1, 17), 16).exact);
  EXPECT_EQ(join_stacks({}, numbers(1, 17), 8).added, 16u);
}

TEST(StackJoin, TakesAStackThatWasEmptiedByASwitch) {
  // The kernel clears the stack when the thread leaves its CPU: the newer one is short.
  Join join = join_stacks(numbers(0, 16), numbers(14, 20), 5);
  EXPECT_TRUE(join.exact);
  EXPECT_EQ(join.added, 4u);
}

}  // namespace
}  // namespace tailtrace::bts
