#include "decoder/history/join.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/shown.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// What a snapshot has that was taken when the thread had made `end` records, of which the ring
// still held those from `begin` on.
ThreadSnapshot snapshot_of(const ThreadSnapshot& whole, std::size_t begin, std::size_t end) {
  ThreadSnapshot part = whole;
  part.first = {whole.first.value + begin};
  part.complete = whole.complete && begin == 0;
  for (std::size_t i = 0; i < begin; ++i)
    part.first_epoch.value += whole.records[i].kind == RecordKind::kCodeChange;
  part.records.assign(whole.records.begin() + static_cast<long>(begin),
                      whole.records.begin() + static_cast<long>(end));
  if (end == whole.records.size()) return part;
  const std::uint8_t flags = kFlagAsync | kFlagSynthetic;
  part.records.push_back({whole.records[end - 1].to, {}, 0, 0, RecordKind::kDisable, flags, 3});
  return part;
}

ThreadSnapshot joined(const ThreadSnapshot& older, const ThreadSnapshot& newer) {
  auto longer = join_snapshots(older, newer);
  EXPECT_TRUE(longer) << longer.error().to_string();
  return longer ? std::move(*longer) : ThreadSnapshot();
}

ThreadSnapshot toy_run(std::uint64_t seed) {
  ToyRun run = ToyProgram(seed, 4, 6).run(seed, 3000, true);
  run.snapshot->first = {1000};
  run.snapshot->complete = true;
  return *run.snapshot;
}

TEST(JoinedSnapshots, AreTheHistoryThatNoRingCut) {
  std::mt19937_64 random(1);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ThreadSnapshot whole = toy_run(seed);
    const std::size_t size = whole.records.size();
    const std::size_t end = 2 + random() % (size - 2), begin = random() % (end + 1);
    const ThreadSnapshot older = snapshot_of(whole, 0, end);
    const ThreadSnapshot both = joined(older, snapshot_of(whole, begin, size));
    EXPECT_EQ(both.records, whole.records) << seed;
    EXPECT_EQ(both.first, whole.first);
    EXPECT_TRUE(both.complete);
    EXPECT_EQ(show(both.records, both.code).executed, show(whole.records, whole.code).executed);
  }
}

TEST(JoinedSnapshots, OfManyStopsAreOneHistory) {
  const ThreadSnapshot whole = toy_run(7);
  const std::size_t size = whole.records.size(), ring = size / 6;
  ThreadSnapshot all = snapshot_of(whole, 0, ring);
  for (std::size_t end = ring; end < size; end += ring / 2)
    all = joined(all, snapshot_of(whole, end - ring, end));
  all = joined(all, snapshot_of(whole, size - ring, size));
  EXPECT_EQ(all.records, whole.records);
}

TEST(JoinedSnapshots, HaveAGapWhereTheyDoNotMeet) {
  const ThreadSnapshot whole = toy_run(3);
  const std::size_t size = whole.records.size();
  const ThreadSnapshot older = snapshot_of(whole, 10, size / 3);
  const ThreadSnapshot newer = snapshot_of(whole, size / 2, size);
  const ThreadSnapshot both = joined(older, newer);
  const Shown before = show(older.records, older.code), behind = show(newer.records, newer.code);
  const Shown found = show(both.records, both.code);
  std::vector<Address> executed = before.executed;
  executed.insert(executed.end(), behind.executed.begin(), behind.executed.end());
  EXPECT_EQ(found.executed, executed);
  EXPECT_EQ(found.gaps, std::vector<GapReason>{GapReason::kOverwritten});
  // The newer ones are where they were.
  EXPECT_EQ(both.end(), newer.end());
}

TEST(JoinedSnapshots, OfWhichOneHoldsTheOtherAreThatOne) {
  const ThreadSnapshot whole = toy_run(5);
  const std::size_t size = whole.records.size();
  const ThreadSnapshot part = snapshot_of(whole, size / 3, size / 2);
  EXPECT_EQ(joined(part, whole).records, whole.records);
  EXPECT_EQ(joined(whole, part).records, whole.records);
  EXPECT_EQ(joined(whole, whole).records, whole.records);
  // In the wrong order.
  const ThreadSnapshot older = snapshot_of(whole, 0, size / 2);
  EXPECT_EQ(joined(snapshot_of(whole, size / 3, size), older).records, whole.records);
}

TEST(JoinedSnapshots, OfRecordsThatDifferAreApart) {
  const ThreadSnapshot whole = toy_run(2);
  const std::size_t size = whole.records.size();
  ThreadSnapshot newer = snapshot_of(whole, size / 3, size);
  newer.records[2].time ^= 1;  // another run of the program
  const ThreadSnapshot both = joined(snapshot_of(whole, 0, size / 2), newer);
  EXPECT_EQ(show(both.records, both.code).gaps, std::vector<GapReason>{GapReason::kOverwritten});
}

TEST(JoinedSnapshots, OfOtherThreadsAreRefused) {
  const ThreadSnapshot whole = toy_run(2);
  ThreadSnapshot other = whole;
  other.thread.tid = 4711;
  auto both = join_snapshots(whole, other);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kUsage);
  other = whole;
  other.engine = "step";
  EXPECT_FALSE(join_snapshots(whole, other));
}

// --- code that changes -------------------------------------------------------------------------

constexpr BranchRecord kChange{{0x1000}, {0x1000}, 0, 0, RecordKind::kCodeChange, kFlagAsync, 1};

// The code at 0x1000 is `jmp 1000`, then `nop; jmp 1000`, then `jmp 1000` again.
ThreadSnapshot changing() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("ebfe")));
  EXPECT_TRUE(image->add({0x1000}, *from_hex("90ebfd"), {1}));
  EXPECT_TRUE(image->add({0x1000}, *from_hex("ebfe"), {2}));
  const BranchRecord one{{0x1000}, {0x1000}, 0, 1, RecordKind::kJump, 0, 0};
  const BranchRecord two{{0x1001}, {0x1000}, 0, 2, RecordKind::kJump, 0, 0};
  ThreadSnapshot whole;
  whole.first = {10};
  whole.code = image;
  whole.complete = true;
  whole.records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                   one,
                   one,
                   kChange,
                   two,
                   two,
                   kChange,
                   one,
                   one};
  whole.records.push_back(
      {{0x1000}, {}, 0, 0, RecordKind::kDisable, kFlagAsync | kFlagSynthetic, 3});
  return whole;
}

TEST(JoinedSnapshots, ReadEachTimeWithItsCode) {
  const ThreadSnapshot whole = changing();
  const Shown truth = show(whole.records, whole.code);
  ASSERT_TRUE(truth.gaps.empty());
  const std::size_t size = whole.records.size();
  for (std::size_t end = 1; end < size; ++end)
    for (std::size_t begin = 0; begin <= end; ++begin) {
      const ThreadSnapshot both =
          joined(snapshot_of(whole, 0, end), snapshot_of(whole, begin, size));
      EXPECT_EQ(both.records, whole.records) << begin << " " << end;
      EXPECT_EQ(show(both.records, both.code).executed, truth.executed) << begin << " " << end;
    }
}

// An engine that looks at the code when it is asked knows only what it is then.
TEST(JoinedSnapshots, ChangeTheCodeWhereTheirCodeDiffers) {
  const ThreadSnapshot whole = changing();
  ThreadSnapshot older = snapshot_of(whole, 0, 3), newer = older;
  auto other = std::make_shared<CodeImage>();
  ASSERT_TRUE(other->add({0x1000}, *from_hex("90ebfd")));
  newer.code = other;
  newer.first = {13};
  newer.records.assign(whole.records.begin() + 4, whole.records.begin() + 6);
  const ThreadSnapshot both = joined(older, newer);
  const Shown found = show(both.records, both.code);
  EXPECT_TRUE(found.gaps.empty());
  const std::vector<Address> truth = {{0x1000}, {0x1000}, {0x1000}, {0x1001}, {0x1000}, {0x1001}};
  EXPECT_EQ(found.executed, truth);
  EXPECT_EQ(both.end(), newer.end());
}

// --- libraries that are gone -------------------------------------------------------------------

TEST(JoinedSnapshots, KnowUntilWhenLibrariesWereThere) {
  ThreadSnapshot whole = changing();
  const std::size_t size = whole.records.size();
  ThreadSnapshot older = snapshot_of(whole, 0, 5);
  older.former_maps = "was 1 a\nwas - b\n";
  ThreadSnapshot newer = snapshot_of(whole, 4, size);
  newer.former_maps = "was - c\nwas 2 b\nwas 1 a\n";
  EXPECT_EQ(joined(older, newer).former_maps, "was - c\nwas 2 b\nwas 1 a\n");
  // An engine may count each one's epochs from its oldest record.
  auto image = std::make_shared<CodeImage>();
  image->overlay(*whole.code, {1}, {2}, {0});
  newer.code = image;
  newer.first_epoch = {0};
  newer.former_maps = "was - c\nwas 1 b\nwas 0 a\n";
  EXPECT_EQ(joined(older, newer).former_maps, "was - c\nwas 2 b\nwas 1 a\n");
}

TEST(JoinedSnapshots, KnowLibrariesThatWereReplacedBetweenThem) {
  const ThreadSnapshot whole = changing();
  ThreadSnapshot older = snapshot_of(whole, 0, 3);
  ThreadSnapshot newer = snapshot_of(whole, 7, whole.records.size());
  newer.code = older.code;  // of the same bytes
  newer.first_epoch = {2};
  newer.former_maps = "was 2 a\n";
  const ThreadSnapshot both = joined(older, newer);
  EXPECT_EQ(both.former_maps, "was 1 a\n");
  EXPECT_EQ(std::ranges::count(both.records, RecordKind::kCodeChange, &BranchRecord::kind), 1);
}

}  // namespace
}  // namespace tailtrace
