#include "plugin/server/lldb/lldb_pauses.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plugin/server/lldb/lldb_switches.h"

namespace tailtrace {
namespace {

constexpr Address kMain{0x1000}, kCall{0x1010}, kFunction{0x2000};

// Recorded from main on: a run of 5 up to a call, then 3 of the function.
ThreadSnapshot one_call() {
  ThreadSnapshot snapshot;
  snapshot.records = {
      {{}, kMain, 10, 0, RecordKind::kEnable, 0, 0},
      {kCall, kFunction, 20, 5, RecordKind::kCall, 0, 0},
      {kFunction + 9, {}, 0, 3, RecordKind::kDisable, kFlagAsync | kFlagSynthetic, 0}};
  snapshot.complete = true;
  return snapshot;
}

std::uint64_t insns_of(const ThreadSnapshot& snapshot) {
  std::uint64_t sum = 0;
  for (const BranchRecord& record : snapshot.records) sum += record.insns;
  return sum;
}

TEST(LldbPauses, InTheMiddleOfARunCutsItInTwo) {
  ThreadSnapshot snapshot = one_call();
  insert_pauses(snapshot, {}, std::vector<Pause>{{{{1}, 2, kMain + 6}, 13, 14}});
  ASSERT_EQ(snapshot.records.size(), 5u);
  const BranchRecord &end = snapshot.records[1], &begin = snapshot.records[2];
  EXPECT_EQ(end.kind, RecordKind::kDisable);
  EXPECT_EQ(end.from, kMain + 6);
  EXPECT_EQ(end.insns, 2u);
  EXPECT_EQ(end.time, 13u);
  EXPECT_EQ(begin.kind, RecordKind::kEnable);
  EXPECT_EQ(begin.to, kMain + 6);
  EXPECT_EQ(begin.time, 14u);
  EXPECT_EQ(snapshot.records[3].insns, 3u);
  EXPECT_EQ(insns_of(snapshot), 8u);
}

TEST(LldbPauses, SeveralInOneRunShareItsInstructions) {
  ThreadSnapshot snapshot = one_call();
  insert_pauses(snapshot, {},
                std::vector<Pause>{{{{1}, 2, kMain + 6}, 0, 0}, {{{1}, 4, kMain + 12}, 0, 0}});
  ASSERT_EQ(snapshot.records.size(), 7u);
  EXPECT_EQ(snapshot.records[1].insns, 2u);
  EXPECT_EQ(snapshot.records[3].insns, 2u);
  EXPECT_EQ(snapshot.records[5].insns, 1u);
  EXPECT_EQ(insns_of(snapshot), 8u);
}

TEST(LldbPauses, WhereNothingRanSinceTheOneBeforeAreNone) {
  ThreadSnapshot snapshot = one_call();
  insert_pauses(snapshot, {},
                std::vector<Pause>{{{{1}, 2, kMain + 6}, 13, 14}, {{{1}, 2, kMain + 6}, 15, 16}});
  ASSERT_EQ(snapshot.records.size(), 5u);
  EXPECT_EQ(snapshot.records[2].time, 16u);
}

// Some engines write the opening record when the thread runs, and some before.
class LldbPausesAtTheBegin : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LldbPausesAtTheBegin, AreShownOnce) {
  ThreadSnapshot snapshot = one_call();
  Position head{GetParam()};
  insert_pauses(snapshot, {},
                std::vector<Pause>{{{head, 0, kMain}, 11, 12}, {{head, 0, kMain}, 13, 14}});
  ASSERT_EQ(snapshot.records.size(), 5u);
  EXPECT_EQ(snapshot.records[0].time, 10u);
  EXPECT_EQ(snapshot.records[1].kind, RecordKind::kDisable);
  EXPECT_EQ(snapshot.records[1].from, kMain);
  EXPECT_EQ(snapshot.records[1].insns, 0u);
  EXPECT_EQ(snapshot.records[2].to, kMain);
  EXPECT_EQ(snapshot.records[2].time, 14u);
  EXPECT_EQ(insns_of(snapshot), 8u);
}

INSTANTIATE_TEST_SUITE_P(BeforeAndBehindTheOpeningRecord, LldbPausesAtTheBegin,
                         testing::Values(0u, 1u));

TEST(LldbPauses, OfAThreadThatStandsThereStillShowItOnce) {
  ThreadSnapshot snapshot = one_call();
  insert_pauses(snapshot, {}, std::vector<Pause>{{{{2}, 3, kFunction + 9}, 21, 22}});
  ASSERT_EQ(snapshot.records.size(), 3u);
  EXPECT_EQ(snapshot.records[2].kind, RecordKind::kDisable);
  EXPECT_EQ(insns_of(snapshot), 8u);
}

TEST(LldbPauses, BeforeTheSnapshotOrItsBeginAreLeftOut) {
  HistoryMark begin{{1}, 2, kMain + 6};
  ThreadSnapshot snapshot = since(one_call(), begin);
  std::vector<BranchRecord> before = snapshot.records;
  insert_pauses(snapshot, begin,
                std::vector<Pause>{{{{0}, 0, kMain}, 1, 1}, {{{1}, 1, kMain + 3}, 2, 2}});
  EXPECT_EQ(snapshot.records, before);
  insert_pauses(snapshot, begin, std::vector<Pause>{{{{1}, 4, kMain + 12}, 3, 4}});
  ASSERT_EQ(snapshot.records.size(), before.size() + 2);
  EXPECT_EQ(snapshot.records[1].insns, 2u);
  EXPECT_EQ(snapshot.records[3].insns, 1u);
}

TEST(LldbPauses, ThatBelongToAnotherHistoryChangeNothing) {
  ThreadSnapshot snapshot = one_call();
  std::vector<BranchRecord> before = snapshot.records;
  insert_pauses(snapshot, {}, std::vector<Pause>{{{{1}, 600, kMain}, 0, 0}});
  EXPECT_EQ(snapshot.records, before);
}

TEST(LldbSwitches, HoldWhatTheThreadDidAndGrow) {
  perf::TimeConversion clock{1'000'000, 1u << 31, 31};
  std::string bytes = lldb_switches({7, 8}, 5000, 9000, clock);
  ASSERT_EQ(bytes.size(), 64u);
  ByteSpan span = as_bytes(bytes);
  for (std::size_t at : {0u, 32u}) {
    EXPECT_EQ(load<std::uint32_t>(span, at), 15u);
    EXPECT_EQ(load<std::uint16_t>(span, at + 6), 32u);
    EXPECT_EQ(load<std::uint32_t>(span, at + 16), 7u);
    EXPECT_EQ(load<std::uint32_t>(span, at + 20), 8u);
  }
  EXPECT_EQ(load<std::uint16_t>(span, 4), 0u);
  EXPECT_EQ(load<std::uint16_t>(span, 36), 1u << 13);
  EXPECT_LE(load<std::uint64_t>(span, 24), clock.to_ns(5000));
  EXPECT_GE(load<std::uint64_t>(span, 56), clock.to_ns(9000));
  EXPECT_TRUE(lldb_switches({7, 8}, 0, 0, clock).empty());
}

}  // namespace
}  // namespace tailtrace
