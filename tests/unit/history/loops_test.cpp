#include "decoder/history/loops.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// 1000 nop | 1001 nop | 1002 jne 1001 | 1004 call 1010 | 1009 jne 1000 | 100b jne 1001 | 100d ret
// 1010 nop | 1011 jne 1010 | 1013 ret
constexpr const char* kCode = "909075fde80700000075f575f4c306069075fdc3";
const std::map<std::uint64_t, int> kSizes = {{0x1000, 1}, {0x1001, 1}, {0x1002, 2}, {0x1004, 5},
                                             {0x1009, 2}, {0x100b, 2}, {0x100d, 1}, {0x1010, 1},
                                             {0x1011, 2}, {0x1013, 1}};

// Writes the records of what is executed.
class LoopWalk {
 public:
  explicit LoopWalk(std::uint64_t at) : at_(at) {
    snapshot_->records.push_back({{}, {at}, 0, 0, RecordKind::kEnable, 0, 0});
    auto image = std::make_shared<CodeImage>();
    EXPECT_TRUE(image->add({0x1000}, *from_hex(kCode)));
    snapshot_->code = image;
  }

  // Goes straight to the branch at `from`, which goes to `to`, so often.
  LoopWalk& branch(std::uint64_t from, std::uint64_t to, RecordKind kind, int times = 1) {
    for (int i = 0; i < times; ++i) {
      std::uint32_t insns = 1;
      for (; at_ != from; at_ += static_cast<unsigned>(kSizes.at(at_))) ++insns;
      snapshot_->records.push_back({{from}, {to}, 0, insns, kind, 0, 0});
      at_ = to;
    }
    return *this;
  }
  LoopWalk& jump(std::uint64_t from, std::uint64_t to, int times = 1) {
    return branch(from, to, RecordKind::kConditional, times);
  }
  LoopWalk& call() { return branch(0x1004, 0x1010, RecordKind::kCall); }
  LoopWalk& ret() { return branch(0x1013, 0x1009, RecordKind::kReturn); }
  // Goes straight on to `next`, and stands there.
  LoopWalk& stop(std::uint64_t next) {
    std::uint32_t insns = 0;
    for (; at_ != next; at_ += static_cast<unsigned>(kSizes.at(at_))) ++insns;
    snapshot_->records.push_back({{next}, {}, 0, insns, RecordKind::kDisable, kFlagAsync, 0});
    return *this;
  }
  LoopWalk& lose(std::uint64_t to) {
    snapshot_->records.push_back({{}, {to}, 0, 0, RecordKind::kOverflow, 0, 0});
    at_ = to;
    return *this;
  }

  std::vector<Loop> found() const {
    History history(snapshot_);
    return find_loops(history, {1, history.size()}, 2);
  }

  // "3-8 x3 0x1001", of each loop.
  std::vector<std::string> loops(Range range = {}, std::uint64_t min_rounds = 2) {
    History history(snapshot_);
    if (range.size() == 0) range = {1, history.size()};
    std::vector<std::string> texts;
    for (const Loop& loop : find_loops(history, range, min_rounds))
      texts.push_back(std::to_string(loop.items.first) + "-" + std::to_string(loop.items.last) +
                      " x" + std::to_string(loop.rounds) + " " + std::to_string(loop.head.value) +
                      "-" + std::to_string(loop.back.value));
    return texts;
  }

 private:
  std::uint64_t at_;
  std::shared_ptr<ThreadSnapshot> snapshot_ = std::make_shared<ThreadSnapshot>();
};

std::string told(const char* items, int rounds, int head, int back) {
  return std::string(items) + " x" + std::to_string(rounds) + " " + std::to_string(head) + "-" +
         std::to_string(back);
}

using Texts = std::vector<std::string>;

TEST(Loops, ALoopIsFromItsFirstRoundToTheLastJumpBack) {
  // 1: nop. 2, 3: a round; four of them jump back, and one is left.
  EXPECT_EQ(LoopWalk(0x1000).jump(0x1002, 0x1001, 4).call().loops(),
            Texts{told("2-9", 4, 0x1001, 0x1002)});
}

TEST(Loops, FewRoundsAreNone) {
  EXPECT_EQ(LoopWalk(0x1000).jump(0x1002, 0x1001, 2).call().loops({}, 3), Texts{});
  EXPECT_EQ(LoopWalk(0x1000).jump(0x1002, 0x1001, 3).call().loops({}, 3).size(), 1u);
}

TEST(Loops, TheInnerOneIsToldWithTheOuter) {
  LoopWalk walk(0x1000);
  for (int i = 0; i < 3; ++i) walk.jump(0x1002, 0x1001, 5).call().ret().jump(0x1009, 0x1000);
  // Each outer round: nop, six times the two of the inner one, call, three called, jump.
  EXPECT_EQ(walk.call().loops(), Texts{told("1-54", 3, 0x1000, 0x1009)});
}

TEST(Loops, ACalledFunctionsLoopIsItsOwn) {
  LoopWalk walk(0x1000);
  walk.call().jump(0x1011, 0x1010, 6).ret();
  EXPECT_EQ(walk.branch(0x100d, 0x1000, RecordKind::kReturn).loops(),
            Texts{told("5-16", 6, 0x1010, 0x1011)});
}

TEST(Loops, AnotherJumpBackToTheSamePlaceIsTheSameLoop) {
  LoopWalk walk(0x1001);
  walk.jump(0x1002, 0x1001).call().ret().jump(0x100b, 0x1001).jump(0x1002, 0x1001);
  EXPECT_EQ(walk.call().loops(), Texts{told("1-12", 3, 0x1001, 0x1002)});
}

TEST(Loops, AreLeftWhereTheCallGoesOnOutsideOfThem) {
  auto exits = [](LoopWalk& walk) {
    std::vector<std::uint64_t> found;
    for (const Loop& loop : walk.found()) found.push_back(loop.exit.value);
    return found;
  };
  using Exits = std::vector<std::uint64_t>;
  // The jump back is not taken any more.
  EXPECT_EQ(exits(LoopWalk(0x1000).jump(0x1002, 0x1001, 4).call()), Exits{0x1002});
  // Nothing is known behind it.
  EXPECT_EQ(exits(LoopWalk(0x1000).jump(0x1002, 0x1001, 4)), Exits{0});
  // It stands behind it, or inside.
  EXPECT_EQ(exits(LoopWalk(0x1000).jump(0x1002, 0x1001, 4).stop(0x1004)), Exits{0x1002});
  EXPECT_EQ(exits(LoopWalk(0x1000).jump(0x1002, 0x1001, 4).stop(0x1002)), Exits{0});
  // Calls do not leave a loop.
  LoopWalk outer(0x1000);
  for (int i = 0; i < 3; ++i) outer.call().ret().jump(0x1009, 0x1000);
  EXPECT_EQ(exits(outer), Exits{0});
  EXPECT_EQ(exits(outer.call().ret().branch(0x100d, 0x2000, RecordKind::kReturn)), Exits{0x1009});
}

TEST(Loops, NothingGoesAcrossALoss) {
  LoopWalk walk(0x1000);
  walk.jump(0x1002, 0x1001, 2).lose(0x1001).jump(0x1002, 0x1001, 2).call();
  EXPECT_EQ(walk.loops(), (Texts{told("2-5", 2, 0x1001, 0x1002), told("7-10", 2, 0x1001, 0x1002)}));
}

TEST(Loops, WhatBeganBeforeTheRangeIsToldFromItsFirstWholeRound) {
  LoopWalk walk(0x1000);
  walk.jump(0x1002, 0x1001, 10).call();
  EXPECT_EQ(walk.loops({7, 25}), Texts{told("8-21", 7, 0x1001, 0x1002)});
  EXPECT_EQ(walk.loops({7, 12}), Texts{told("8-11", 2, 0x1001, 0x1002)});
  EXPECT_EQ(walk.loops({22, 25}), Texts{});
}

TEST(Loops, OfAnEmptyHistoryAreNone) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = std::make_shared<CodeImage>();
  EXPECT_TRUE(find_loops(History(snapshot), {}).empty());
}

// Whatever was executed: a loop begins at its head and ends with a jump to it, it has that many
// jumps back at least, and no two share an instruction.
TEST(Loops, HoldOfRandomPrograms) {
  std::size_t loops = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ToyRun run = ToyProgram(seed, 3, 5).run(seed, 5000, seed % 2 == 0);
    History history(run.snapshot);
    HistoryCursor cursor(history);
    std::uint64_t behind = 1 + seed * 20;
    for (const Loop& loop : find_loops(history, {behind, history.size() - seed}, 2)) {
      ++loops;
      ASSERT_GE(loop.items.first, behind);
      behind = loop.items.last + 1;
      ASSERT_LE(loop.items.last, history.size() - seed);
      cursor.seek(loop.items.first);
      EXPECT_EQ(cursor.item().instruction.address, loop.head);
      std::uint64_t jumps = 0;
      for (; cursor.item().number < loop.items.last; cursor.next())
        if (cursor.item().branch != nullptr && cursor.item().branch->to == loop.head) ++jumps;
      EXPECT_EQ(cursor.item().instruction.address, loop.back);
      ASSERT_NE(cursor.item().branch, nullptr);
      EXPECT_EQ(cursor.item().branch->to, loop.head);
      EXPECT_GE(jumps + 1, loop.rounds);
    }
  }
  EXPECT_GT(loops, 100u);
}

}  // namespace
}  // namespace tailtrace
