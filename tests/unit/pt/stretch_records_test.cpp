// Effects as records, and what effects leave to the next.
#include "decoder/pt/stretch_records.h"

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
    words_.push_back(book_->add(effect, records) | kPathFirst);
    if (!records.empty()) {
      records.front().insns += open_;
      open_ = 0;
    }
    open_ += tail_insns;
    expected_.insert(expected_.end(), records.begin(), records.end());
    return_ = returns ? expected_.size() : 0;
  }

  // `packets` make a word each.
  std::vector<BranchRecord> expand(const Bytes& packets, std::size_t room, bool timed) {
    if (return_ != 0) expected_[return_ - 1].to = {kStart};
    Stretch stretch;
    stretch.book = book_;
    stretch.start.at = {kStart};
    stretch.end.at = {kStart};
    stretch.end.timed = timed;
    std::vector<BranchRecord> piece(room), all;
    StretchRecords records(stretch, words_, packets, config_);
    while (!records.done()) {
      const std::size_t count = records.take(piece);
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    }
    EXPECT_EQ(records.open_insns(), open_);
    return all;
  }

  DecoderConfig config_;
  std::shared_ptr<EffectBook> book_ = std::make_shared<EffectBook>();
  std::vector<std::uint32_t> words_;
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
  EXPECT_EQ(expand({4, 6}, 1024, false), expected_);
  EXPECT_FALSE(book_->is_near(0));
  EXPECT_TRUE(book_->is_near(1));
}

TEST_F(Expansion, AReturnLeadsToWhereTheNextEffectStartsWhateverThatHas) {
  add(kStart, {jump(kStart, 0, 1)}, 0, true);
  add(kStart + 0x1000, {}, 5);
  add(kStart + 0x2000, {}, 6);
  add(kStart + 0x3000, {jump(kStart + 0x3000, 0, 1)}, 0, true);
  add(~0ull, {jump(~0ull, 0, 1)}, 0, true);
  EXPECT_EQ(expand({4, 6, 4, 6, 4}, 1024, false), expected_);
  EXPECT_EQ(expected_[1].insns, 12u);
}

// In pieces, with TNTs and TIPs in any order and an MTC amid them, which nothing makes a time of.
TEST_F(Expansion, AnyNumberOfRecordsComesOutInPiecesOfAnySize) {
  std::mt19937 random(5);
  Bytes packets;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t start = kStart + random() % (1u << 20);
    std::vector<BranchRecord> records;
    for (std::size_t count = random() % 10; count != 0; --count)
      records.push_back(jump(start + random() % 4096, start + random() % 4096, 1 + random() % 50));
    const bool returns = !records.empty() && random() % 3 == 0;
    add(start, std::move(records), returns ? 0 : static_cast<std::uint16_t>(random() % 9), returns);
    static constexpr std::uint8_t kTip[7] = {0x6d, 1, 2, 3, 4, 5, 6};
    if (random() % 5 == 0)
      packets.insert(packets.end(), std::begin(kTip), std::end(kTip));
    else
      packets.push_back(static_cast<std::uint8_t>(4 + 2 * (random() % 126)));
    if (random() % 30 == 0) packets.insert(packets.end(), {0x59, 0x07});
  }
  for (const std::size_t room : {StretchRecords::kSlack, std::size_t{600}, std::size_t{1} << 16}) {
    EXPECT_EQ(expand(packets, room, true), expected_) << room;
    EXPECT_EQ(expand(packets, room, false), expected_) << room;
  }
}

}  // namespace
}  // namespace tailtrace::pt
