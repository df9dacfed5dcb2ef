#include "plugin/server/recording/snapshot_cut.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

constexpr std::uint64_t kOldest = 100;  // position of the oldest record

BranchRecord record(std::uint64_t from, RecordKind kind, std::uint32_t insns = 5) {
  return {{from}, {from + 0x10}, 0, insns, kind, 0, 0};
}

// Jumps at 0x1000, 0x1010 and so on, but for a change of the code at 0x1020, and where it stands.
ThreadSnapshot jumps() {
  ThreadSnapshot snapshot;
  snapshot.first = {kOldest};
  snapshot.first_epoch = {7};
  for (std::uint64_t at = 0x1000; at < 0x1060; at += 0x10)
    snapshot.records.push_back(
        record(at, at == 0x1020 ? RecordKind::kCodeChange : RecordKind::kJump));
  BranchRecord end = record(0x1060, RecordKind::kDisable, 3);
  end.flags = kFlagSynthetic | kFlagAsync;
  snapshot.records.push_back(end);
  return snapshot;
}

void expect_opened_at(const ThreadSnapshot& snapshot, Address pc) {
  ASSERT_FALSE(snapshot.records.empty());
  const BranchRecord& first = snapshot.records.front();
  EXPECT_EQ(first.kind, RecordKind::kEnable);
  EXPECT_EQ(first.to, pc);
  EXPECT_EQ(first.insns, 0u);
  EXPECT_EQ(first.flags, kFlagSynthetic);
  EXPECT_TRUE(snapshot.complete);
}

TEST(SnapshotCut, EndMarkCountsNoRecordThatIsInNoRing) {
  const HistoryMark mark = end_mark(jumps());
  EXPECT_EQ(mark, (HistoryMark{{kOldest + 6}, 3, {0x1060}}));
}

TEST(SnapshotCut, SinceAMarkInTheMiddleOfARun) {
  const ThreadSnapshot cut = since(jumps(), {{kOldest + 4}, 2, {0x1035}});
  expect_opened_at(cut, {0x1035});
  EXPECT_EQ(cut.first.value, kOldest + 3);
  ASSERT_EQ(cut.records.size(), 4u);
  EXPECT_EQ(cut.records[1].from.value, 0x1040u);
  EXPECT_EQ(cut.records[1].insns, 3u);
  EXPECT_EQ(cut.records[2].insns, 5u);
  EXPECT_EQ(cut.first_epoch.value, 8u);
  EXPECT_EQ(cut.end(), jumps().end());
}

TEST(SnapshotCut, SinceAMarkRightBehindAChangeOfTheCode) {
  const ThreadSnapshot cut = since(jumps(), {{kOldest + 3}, 0, {0x1030}});
  expect_opened_at(cut, {0x1030});
  EXPECT_EQ(cut.first_epoch.value, 8u);
  EXPECT_EQ(cut.records[1].from.value, 0x1030u);
}

TEST(SnapshotCut, SinceAMarkRightBeforeAChangeOfTheCode) {
  const ThreadSnapshot cut = since(jumps(), {{kOldest + 2}, 0, {0x1020}});
  EXPECT_EQ(cut.first_epoch.value, 7u);
  EXPECT_EQ(cut.records[1].kind, RecordKind::kCodeChange);
}

TEST(SnapshotCut, SinceTheOldestRecordOneIsPutBeforeIt) {
  const ThreadSnapshot cut = since(jumps(), {{kOldest}, 1, {0xfff}});
  expect_opened_at(cut, {0xfff});
  EXPECT_EQ(cut.first.value, kOldest - 1);
  EXPECT_EQ(cut.records.size(), jumps().records.size() + 1);
  EXPECT_EQ(cut.records[1].insns, 4u);
  EXPECT_EQ(cut.end(), jumps().end());
}

TEST(SnapshotCut, SinceAnOpeningRecordNoneIsMade) {
  ThreadSnapshot snapshot = jumps();
  snapshot.records[3] = {{}, {0x1040}, 0, 0, RecordKind::kEnable, 0, 0};
  const ThreadSnapshot cut = since(snapshot, {{kOldest + 3}, 0, {0x1040}});
  EXPECT_EQ(cut.records.front().flags, 0u);
  EXPECT_EQ(cut.first.value, kOldest + 3);
  EXPECT_EQ(cut.records.size(), 4u);
}

TEST(SnapshotCut, SinceAMarkThatIsOverwrittenOrYetToComeIsAll) {
  for (std::uint64_t head : {kOldest - 1, kOldest + 7}) {
    const ThreadSnapshot cut = since(jumps(), {{head}, 0, {0x1000}});
    EXPECT_EQ(cut.records.size(), jumps().records.size());
    EXPECT_EQ(cut.first.value, kOldest);
  }
}

TEST(SnapshotCut, NewestInstructionsAreWholeRecords) {
  EXPECT_EQ(newest_instructions(jumps(), 14).records.size(), 3u);  // 3 + 5 + 5
  EXPECT_EQ(newest_instructions(jumps(), 12).records.size(), 2u);
  EXPECT_EQ(newest_instructions(jumps(), 0).records.size(), 1u);
  const ThreadSnapshot cut = newest_instructions(jumps(), 14);
  EXPECT_EQ(cut.first.value, kOldest + 4);
  EXPECT_EQ(cut.first_epoch.value, 8u);
  EXPECT_FALSE(cut.complete);
}

}  // namespace
}  // namespace tailtrace
