#include "decoder/history/history.h"

#include <gtest/gtest.h>

#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

constexpr std::uint8_t kStands = kFlagAsync;

// 1000 nop | 1001 jz 1005 | 1003 jmp 1008 | 1005 nop nop nop | 1008 call 1010 | 100d ret | 100e 06
// (no instruction) | 1010 nop | 1011 ret
std::shared_ptr<CodeImage> small_code() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("907402eb03909090e803000000c3060690c3")));
  return image;
}

std::shared_ptr<ThreadSnapshot> snapshot_of(std::vector<BranchRecord> records,
                                            std::shared_ptr<const CodeImage> code = small_code()) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->records = std::move(records);
  snapshot->code = std::move(code);
  return snapshot;
}

BranchRecord enable(std::uint64_t to, EdgeCause cause = EdgeCause::kThread) {
  return {{}, {to}, 0, 0, RecordKind::kEnable, 0, static_cast<std::uint16_t>(cause)};
}
BranchRecord disable(std::uint64_t at, std::uint32_t insns) {
  return {{at}, {}, 0, insns, RecordKind::kDisable, kStands, 0};
}
BranchRecord branch(RecordKind kind, std::uint64_t from, std::uint64_t to, std::uint32_t insns) {
  return {{from}, {to}, 0, insns, kind, 0, 0};
}

// "1000 1001 [no-code] 1010": every item, walked in both directions, which must agree.
std::string items_of(const History& history) {
  std::vector<std::string> forward;
  HistoryCursor cursor(history);
  auto text = [&] {
    const HistoryItem& item = cursor.item();
    if (item.is_gap) return "[" + std::string(reason_name(item.gap.reason)) + "]";
    char address[20];
    snprintf(address, sizeof address, "%llx",
             static_cast<unsigned long long>(item.instruction.address.value));
    return std::string(address);
  };
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    EXPECT_EQ(cursor.item().number, forward.size() + 1);
    forward.push_back(text());
  }
  EXPECT_EQ(forward.size(), history.size());
  std::size_t left = forward.size();
  HistoryCursor back(history);
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev()) EXPECT_EQ(text(), forward[--left]);
  EXPECT_EQ(left, 0u);
  std::string all;
  for (const std::string& one : forward) all += (all.empty() ? "" : " ") + one;
  return all;
}

std::string items_of(std::vector<BranchRecord> records) {
  return items_of(History(snapshot_of(std::move(records))));
}

TEST(History, IsEmptyWithoutRecords) {
  History history(snapshot_of({}));
  EXPECT_EQ(history.size(), 0u);
  EXPECT_FALSE(history.stop());
  EXPECT_FALSE(history.resolve(-1));
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  EXPECT_FALSE(cursor.valid());
  cursor.seek_to_oldest();
  EXPECT_FALSE(cursor.valid());
}

TEST(History, ShowsStraightRunsBetweenBranches) {
  EXPECT_EQ(items_of({enable(0x1000), branch(RecordKind::kJump, 0x1003, 0x1008, 3),
                      branch(RecordKind::kCall, 0x1008, 0x1010, 1),
                      branch(RecordKind::kReturn, 0x1011, 0x100d, 2), disable(0x100d, 0)}),
            "1000 1001 1003 1008 1010 1011");
}

TEST(History, TellsTakenFromNotTaken) {
  History history(snapshot_of(
      {enable(0x1000), branch(RecordKind::kConditional, 0x1001, 0x1005, 2), disable(0x1000, 3)}));
  EXPECT_EQ(items_of(history), "1000 1001 [bad-trace]");
  HistoryCursor cursor(history);
  cursor.seek(2);
  ASSERT_NE(cursor.item().branch, nullptr);
  EXPECT_EQ(cursor.item().branch->to.value, 0x1005u);
  EXPECT_EQ(to_hex(cursor.bytes()), "7402");
  History other(
      snapshot_of({enable(0x1000), branch(RecordKind::kJump, 0x1003, 0x1008, 3), disable(0, 0)}));
  HistoryCursor not_taken(other);
  not_taken.seek(2);
  EXPECT_EQ(not_taken.item().instruction.kind, InstructionClass::kConditional);
  EXPECT_EQ(not_taken.item().branch, nullptr);
}

TEST(History, CountsBackFromTheNewest) {
  History history(snapshot_of({enable(0x1005), disable(0x1008, 3)}));
  EXPECT_EQ(history.stop()->value, 0x1008u);
  EXPECT_EQ(history.resolve(-1), 3u);
  EXPECT_EQ(history.resolve(-3), 1u);
  EXPECT_EQ(history.resolve(3), 3u);
  for (std::int64_t none :
       {std::int64_t{0}, std::int64_t{4}, std::int64_t{-4},
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()})
    EXPECT_FALSE(history.resolve(none)) << none;
}

// The run before the oldest record held began where an overwritten record went to.
TEST(History, BeginsBehindTheOldestRecordOfARingThatWentRound) {
  EXPECT_EQ(items_of({branch(RecordKind::kJump, 0x1003, 0x1008, 3),
                      branch(RecordKind::kCall, 0x1008, 0x1010, 1), disable(0x1010, 0)}),
            "1008");
}

TEST(History, InterruptsARunWhereAnAsynchronousEventTookIt) {
  BranchRecord signal{{0x1006}, {0x1010}, 0, 1, RecordKind::kSignal, kStands, 11};
  EXPECT_EQ(items_of({enable(0x1005), signal, disable(0x1011, 1)}), "1005 1010");
  signal.from = {0x1007};  // is not where one instruction leads
  EXPECT_EQ(items_of({enable(0x1005), signal, disable(0x1011, 1)}), "[bad-trace] 1010");
}

TEST(History, GoesOnWithoutAGapWhereRecordingWasOffAndNothingHappened) {
  EXPECT_EQ(items_of({enable(0x1005), disable(0x1006, 1), enable(0x1006), disable(0x1008, 2)}),
            "1005 1006 1007");
  EXPECT_EQ(items_of({enable(0x1005), disable(0x1006, 1), enable(0x1010), disable(0x1011, 1)}),
            "1005 [not-recorded] 1010");
  EXPECT_EQ(items_of({enable(0x1005), disable(0x1006, 1), enable(0x1010, EdgeCause::kExec),
                      disable(0x1011, 1)}),
            "1005 [replaced] 1010");
}

TEST(History, SaysWhereCodeIsNotKnownAndShowsWhatLedThere) {
  History history(snapshot_of({enable(0x1010), branch(RecordKind::kReturn, 0x1011, 0x100f, 2),
                               branch(RecordKind::kJump, 0x9000, 0x9100, 5),
                               branch(RecordKind::kJump, 0x9100, 0x9200, 7),
                               branch(RecordKind::kJump, 0x9200, 0x1010, 1), disable(0x1011, 1)}));
  EXPECT_EQ(items_of(history), "1010 1011 [bad-instruction] [no-code] 1010");
  HistoryCursor cursor(history);
  cursor.seek(3);
  EXPECT_EQ(cursor.item().gap.lost, 5u);
  cursor.seek(4);
  EXPECT_EQ(cursor.item().gap.lost, 8u);
  EXPECT_EQ(cursor.item().gap.at.value, 0x9100u);
  EXPECT_FALSE(cursor.item().gap.lost_more);
  EXPECT_EQ(gap_text(cursor.item().gap),
            "8 instructions not shown: the code at 0x9100 is not known");
}

TEST(History, NeverBelievesRecordsThatContradictTheCode) {
  // A jump in the middle of a straight run.
  EXPECT_EQ(
      items_of({enable(0x1003), branch(RecordKind::kCall, 0x1008, 0x1010, 5), disable(0x1011, 1)}),
      "[bad-trace] 1010");
  // A direct branch that goes elsewhere, a branch that is none, a branch of another kind.
  EXPECT_EQ(
      items_of({enable(0x1003), branch(RecordKind::kJump, 0x1003, 0x1005, 1), disable(0x1006, 1)}),
      "[bad-trace] 1005");
  EXPECT_EQ(
      items_of({enable(0x1005), branch(RecordKind::kJump, 0x1005, 0x1010, 1), disable(0x1011, 1)}),
      "[bad-trace] 1010");
  EXPECT_EQ(
      items_of({enable(0x1008), branch(RecordKind::kJump, 0x1008, 0x1010, 1), disable(0x1011, 1)}),
      "[bad-trace] 1010");
  // A branch that executed nothing, a record of no kind, one that leads nowhere.
  EXPECT_EQ(
      items_of({enable(0x1003), branch(RecordKind::kJump, 0x1003, 0x1008, 0), disable(0x1010, 0)}),
      "[bad-trace]");
  EXPECT_EQ(items_of({enable(0x1005), BranchRecord{}, enable(0x1010), disable(0x1011, 1)}),
            "[bad-trace] 1010");
  EXPECT_EQ(items_of({enable(0x1010), branch(RecordKind::kReturn, 0x1011, 0, 2),
                      branch(RecordKind::kJump, 0x1003, 0x1008, 9), disable(0x1008, 0)}),
            "1010 1011 [bad-trace]");
}

TEST(History, ShowsALossAsOneGapWithItsCause) {
  BranchRecord overflow{{0x1006}, {0x1010}, 0, 1, RecordKind::kOverflow, kStands, 0};
  EXPECT_EQ(items_of({enable(0x1005), overflow, disable(0x1011, 1)}), "1005 [overflow] 1010");
  BranchRecord lost{
      {}, {}, 0, 0, RecordKind::kGap, 0, static_cast<std::uint16_t>(GapCause::kOverwritten)};
  EXPECT_EQ(items_of({enable(0x1005), disable(0x1006, 1), lost,
                      branch(RecordKind::kJump, 0x1003, 0x1008, 3),
                      branch(RecordKind::kCall, 0x1008, 0x1010, 1), disable(0x1010, 0)}),
            "1005 [overwritten] 1008");
  EXPECT_EQ(items_of({enable(0x1005), lost, enable(0x1010), disable(0x1011, 1)}),
            "[overwritten] 1010");
}

TEST(History, ReadsTheCodeOfTheTimeItWasExecutedIn) {
  auto code = small_code();
  ASSERT_TRUE(code->add({0x1005}, *from_hex("ebf9"), {1}));  // jmp 0x1000
  BranchRecord change{{0x1005}, {0x1005}, 0, 0, RecordKind::kCodeChange, kStands, 0};
  History history(snapshot_of({enable(0x1005), disable(0x1006, 1), enable(0x1005), change,
                               branch(RecordKind::kJump, 0x1005, 0x1000, 1), disable(0x1001, 1)},
                              code));
  EXPECT_EQ(items_of(history), "1005 [not-recorded] 1005 1000");
  HistoryCursor cursor(history);
  cursor.seek(3);
  EXPECT_EQ(to_hex(cursor.bytes()), "ebf9");
  cursor.seek(1);
  EXPECT_EQ(to_hex(cursor.bytes()), "90");
}

TEST(History, DoesNotFollowRunsThatNobodyCanHaveWritten) {
  BranchRecord wild = disable(0, ~0u);
  EXPECT_EQ(items_of({enable(0x1000), wild}), "[too-long]");
}

TEST(History, StaysRightInRunsLongerThanItsWindow) {
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add({0x1000}, Bytes(20000, 0x90)));
  History history(snapshot_of({enable(0x1000), disable(0x1000 + 15000, 15000)}, code));
  ASSERT_EQ(history.size(), 15000u);
  HistoryCursor cursor(history);
  for (std::uint64_t number : {15000, 1, 4096, 4097, 8193, 12000, 4096, 14999}) {
    cursor.seek(number);
    EXPECT_EQ(cursor.item().instruction.address.value, 0x1000 + number - 1);
  }
}

class ToyHistory : public testing::TestWithParam<int> {};

// Truth is what the toy machine executed, not what any decoder of ours thinks of it.
TEST_P(ToyHistory, EqualsWhatTheMachineExecutedInBothDirectionsAndAtRandom) {
  auto seed = static_cast<std::uint64_t>(GetParam());
  ToyProgram program(seed, 1 + seed % 7, 2 + seed % 9);
  ToyRun run = program.run(seed, 1 + (seed * 977) % 5000, seed % 3 == 0);
  History history(run.snapshot);
  ASSERT_EQ(history.size(), run.executed.size());
  EXPECT_EQ(history.gaps(), 0u);
  HistoryCursor cursor(history);
  std::uint64_t n = 0;
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next())
    ASSERT_EQ(cursor.item().instruction.address, run.executed[n++]);
  ASSERT_EQ(n, run.executed.size());
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev())
    ASSERT_EQ(cursor.item().instruction.address, run.executed[--n]);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    n = random() % history.size();
    cursor.seek(n + 1);
    ASSERT_EQ(cursor.item().instruction.address, run.executed[n]);
  }
}

// However old records were lost, what is left is the newest part of the same history.
TEST_P(ToyHistory, OfFewerRecordsIsTheTailOfTheWhole) {
  auto seed = static_cast<std::uint64_t>(GetParam());
  ToyRun run = ToyProgram(seed, 3, 6).run(seed, 3000);
  auto tail = std::make_shared<ThreadSnapshot>(*run.snapshot);
  std::size_t cut = 1 + seed * 7 % (tail->records.size() - 2);
  tail->records.erase(tail->records.begin(),
                      tail->records.begin() + static_cast<std::ptrdiff_t>(cut));
  tail->first = {cut};
  History history(tail);
  EXPECT_EQ(history.gaps(), 0u);
  ASSERT_LE(history.size(), run.executed.size());
  HistoryCursor cursor(history);
  std::size_t n = run.executed.size();
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev())
    ASSERT_EQ(cursor.item().instruction.address, run.executed[--n]);
  std::uint64_t held = 0;
  for (std::size_t i = 1; i < tail->records.size(); ++i) held += tail->records[i].insns;
  EXPECT_EQ(history.size(), held);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ToyHistory, testing::Range(1, 40));

TEST(History, KeepsLessThanAByteForEachInstruction) {
  ToyRun run = ToyProgram(5, 4, 8).run(5, 200000);
  History history(run.snapshot);
  EXPECT_LT(history.index_size_bytes() * 4, history.size());
}

}  // namespace
}  // namespace tailtrace
