// Effects as records, and what effects leave to the next.
#include "decoder/pt/fast/stretch_records.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace tailtrace::pt {
namespace {

constexpr std::uint64_t kStart = 0x7ffff7dd1000;

// A book in the making, and the records of its effects one after the other.
class Expansion : public ::testing::Test {
 protected:
  // An effect of these records, and `tail_insns` behind the last.
  void add(std::uint64_t start, std::vector<BranchRecord> records, std::uint16_t tail_insns,
           bool returns = false) {
    if (return_ != 0) expected_[return_ - 1].to = {start};
    Effect effect;
    effect.start = start;
    effect.tail_insns = tail_insns;
    effect.lead_count = 0;
    effect.decides = 1;
    effect.returns = returns;
    words_.push_back(add(effect, records) | kPathFirst);
    if (!records.empty()) {
      records.front().insns += open_;
      open_ = 0;
    }
    open_ += tail_insns;
    expected_.insert(expected_.end(), records.begin(), records.end());
    return_ = returns ? expected_.size() : 0;
  }

  std::uint32_t add(const Effect& effect, std::span<const BranchRecord> records) {
    if (!EffectBook::has_room(part_, records.size())) book_->extend(part_);
    return book_->add(part_, effect, records);
  }

  // In pieces for which there is `room`.
  std::vector<BranchRecord> expand(std::size_t room) {
    if (return_ != 0) expected_[return_ - 1].to = {kStart};
    Stretch stretch;
    stretch.book = book_;
    stretch.start = start_;
    stretch.end.at = {kStart};
    std::vector<BranchRecord> piece(room), all;
    StretchRecords records(stretch, words_, marks_);
    while (!records.done()) {
      const std::size_t count = records.take(piece);
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    }
    EXPECT_EQ(records.open_insns(), open_);
    return all;
  }

  // The next word's packet has this time, and all behind it, until the next mark.
  void mark(std::int32_t since_start, bool exact = false) {
    marks_.push_back({static_cast<std::uint32_t>(words_.size()) & 0x7fffffff, exact, since_start});
  }

  PathStart start_{{kStart}, {}, {}};
  std::shared_ptr<EffectBook> book_ = std::make_shared<EffectBook>();
  EffectBook::Part part_;
  std::vector<std::uint32_t> words_;
  std::vector<TimeMark> marks_;
  std::vector<BranchRecord> expected_;

 private:
  std::uint32_t open_ = 0;
  std::size_t return_ = 0;  // behind the record that waits for where it leads
};

BranchRecord jump(std::uint64_t from, std::uint64_t to, std::uint32_t insns) {
  return {{from}, {to}, 0, insns, RecordKind::kJump, 0, 0};
}

TEST_F(Expansion, ARecordKeepsAllButItsTime) {
  BranchRecord filtered = jump(kStart, 0, 0x1ffff);
  filtered.kind = RecordKind::kDisable;
  filtered.flags = kFlagAsync;
  filtered.extra = 6;
  add(kStart, {jump(kStart, 1, 1), jump(1, ~0ull, 2), filtered}, 7);
  add(kStart + 0x40, {jump(0, kStart + 8, 0x12345678)}, 0);
  EXPECT_EQ(expand(1024), expected_);
  EXPECT_FALSE(book_->is_near(0));
  EXPECT_TRUE(book_->is_near(1));
}

TEST_F(Expansion, AReturnLeadsToWhereTheNextEffectStartsWhateverThatHas) {
  add(kStart, {jump(kStart, 0, 1)}, 0, true);
  add(kStart + 0x1000, {}, 5);
  add(kStart + 0x2000, {}, 6);
  add(kStart + 0x3000, {jump(kStart + 0x3000, 0, 1)}, 0, true);
  add(~0ull, {jump(~0ull, 0, 1)}, 0, true);
  EXPECT_EQ(expand(1024), expected_);
  EXPECT_EQ(expected_[1].insns, 12u);
}

// In pieces, with marks among them that tell no other time.
TEST_F(Expansion, AnyNumberOfRecordsComesOutInPiecesOfAnySize) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t start = kStart + random() % (1u << 20);
    std::vector<BranchRecord> records;
    for (std::size_t count = random() % 10; count != 0; --count)
      records.push_back(jump(start + random() % 4096, start + random() % 4096, 1 + random() % 50));
    const bool returns = !records.empty() && random() % 3 == 0;
    if (random() % 30 == 0) mark(0);
    add(start, std::move(records), returns ? 0 : static_cast<std::uint16_t>(random() % 9), returns);
  }
  for (const std::size_t room : {StretchRecords::kSlack, std::size_t{600}, std::size_t{1} << 16})
    EXPECT_EQ(expand(room), expected_) << room;
}

// --- Times -----------------------------------------------------------------------------------

class Times : public Expansion {
 protected:
  // A packet of one branch whose time may be exact.
  void branch() {
    BranchRecord record = jump(kStart, kStart, 1);
    record.flags = kFlagTimeExact;
    add(kStart, {record}, 0);
  }
  // Of each record: a time, and `*` where it is exact.
  std::string times() {
    std::string text;
    for (const BranchRecord& record : expand(1024))
      text += fmt::format(" {}{}", record.time, (record.flags & kFlagTimeExact) != 0 ? "*" : "");
    return text;
  }
};

TEST_F(Times, TheFirstPacketHasThatOfTheStart) {
  start_.before = {90, false};
  start_.first = {100, true};
  branch();
  branch();
  EXPECT_EQ(times(), " 100* 100");
}

TEST_F(Times, AMarkHoldsFromItsWordOnAndIsExactForItsOwnPacketOnly) {
  start_.first = {100, false};
  branch();
  branch();
  mark(7, true);
  branch();
  branch();
  mark(9);
  branch();
  branch();
  mark(11);  // behind the last word: of what comes after the stretch
  EXPECT_EQ(times(), " 100 100 107* 107 109 109");
}

TEST_F(Times, OfMarksBeforeOnePacketTheNewestHolds) {
  start_.first = {100, true};
  mark(3, true);
  mark(5);
  branch();
  mark(6);
  mark(8, true);
  branch();
  EXPECT_EQ(times(), " 105 108*");
}

// A clock that was estimated too far waits; one that was set back goes back.
TEST_F(Times, OnlyLargeStepsGoBack) {
  start_.first = {1u << 30, false};
  mark(20);
  branch();
  mark(10);
  branch();
  mark(-(1 << 29));
  branch();
  EXPECT_EQ(times(), fmt::format(" {0} {0} {1}", (1u << 30) + 20, 1u << 29));
}

// Direct jumps before the first branch of a packet.
TEST_F(Times, WhatAPacketDidNotTellHasTheTimeOfThePacketBefore) {
  start_.first = {100, false};
  branch();
  mark(5, true);
  Effect effect;
  effect.start = kStart;
  effect.lead_count = 1;
  effect.decides = 1;
  BranchRecord told = jump(kStart, kStart, 1);
  told.flags = kFlagTimeExact;
  const std::vector<BranchRecord> records = {jump(kStart, kStart, 1), told};
  words_.push_back(add(effect, records) | kPathFirst);
  EXPECT_EQ(times(), " 100 100 105*");
}

// What is left of outcomes that came before the stretch.
TEST_F(Times, WordsBeforeTheFirstPacketHaveTheTimeBefore) {
  start_.before = {90, true};
  start_.first = {100, true};
  branch();
  words_.back() &= kPathEffect;
  branch();
  EXPECT_EQ(times(), " 90* 100*");
}

}  // namespace
}  // namespace tailtrace::pt
