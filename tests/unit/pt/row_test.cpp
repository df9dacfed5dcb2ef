// The memory of the fast path: whatever is put in is found again, wherever it has moved to.
#include "decoder/pt/fast/row.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <span>

namespace tailtrace::pt {
namespace {

// Rows between states that are named by their addresses, and a plain map of the same.
class RowMemory : public testing::Test {
 protected:
  using Symbol = std::pair<std::uint64_t, std::uint64_t>;  // address of the state; bits or target

  StateKey key(std::uint64_t ip) {
    if (!Rows::has_room(part_, 0)) rows_.extend(part_);
    return rows_.key_of(part_, ip, CodeMode::k64);
  }

  std::uint64_t row_to(std::uint64_t ip, int growth = 0) {
    return Transition{growth < 0 ? 0 : key(ip), effect_++, 0, growth, false}.pack();
  }

  // Keys may change.
  void take_more() {
    if (!rows_.takes_more()) rows_.make_room({});
  }

  void put_outcome(std::uint64_t from, std::uint8_t bits, std::uint64_t to) {
    if (!outcomes_.emplace(Symbol{from, bits}, to).second) return;
    take_more();
    rows_.put(key(from), bits, row_to(to, to == 0 ? -1 : 0));
  }

  // Of a TIP it does not matter where it comes from.
  void put_target(std::uint64_t target) {
    if (!targets_.emplace(target).second) return;
    take_more();
    rows_.put(mode_key(CodeMode::k64), target, IpKind::kTarget, row_to(target));
  }

  void put_off(std::uint64_t from, std::uint64_t target) {
    if (!offs_.emplace(Symbol{from, target}, target).second) return;
    take_more();
    rows_.put(key(from), target, IpKind::kOff, row_to(target));
  }

  void expect_all_found() {
    for (const auto& [symbol, to] : outcomes_) {
      std::uint64_t row = rows_.find(key(symbol.first), static_cast<std::uint8_t>(symbol.second));
      ASSERT_NE(row, 0u);
      EXPECT_EQ(RowBits::pops(row), to == 0);
      EXPECT_EQ(RowBits::next(row), to == 0 ? 0 : key(to));
    }
    for (const auto& [symbol, to] : offs_) {
      std::uint64_t row = rows_.find(key(symbol.first), symbol.second, IpKind::kOff);
      ASSERT_NE(row, 0u);
      EXPECT_EQ(RowBits::next(row), key(to));
    }
    for (std::uint64_t to : targets_) {
      std::uint64_t row = rows_.find(mode_key(CodeMode::k64), to, IpKind::kTarget);
      ASSERT_NE(row, 0u);
      EXPECT_EQ(RowBits::next(row), key(to));
    }
    EXPECT_EQ(rows_.find(key(1), 0x80, IpKind::kOff), 0u);
  }

  Rows rows_;
  Rows::Part part_;
  std::map<Symbol, std::uint64_t> outcomes_, offs_;
  std::set<std::uint64_t> targets_;
  std::uint32_t effect_ = 0;
};

TEST_F(RowMemory, FindsWhatWasPutInBeforeAndAfterItMakesRoom) {
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    std::uint64_t from = 0x1000 + random() % 500, to = 0x1000 + random() % 500;
    put_outcome(from, static_cast<std::uint8_t>(4 + 2 * (random() % 126)), random() % 8 ? to : 0);
    put_off(from, to);
    put_target(to);
  }
  expect_all_found();
  rows_.make_room({});
  expect_all_found();
}

TEST_F(RowMemory, RenamesTheKeysThatItsOwnerKeeps) {
  for (std::uint64_t i = 0; i < 100; ++i)
    for (std::uint8_t bits : {4, 6, 8, 10, 12}) put_outcome(0x1000 + i, bits, 0x1001 + i);
  StateKey kept[] = {0, key(0x1010), key(0x1020)};
  std::uint32_t effect = rows_.add_effect(part_.effects, {}, {}, 0);
  rows_.put_pushes(effect, {{key(0x1030), 0}});
  rows_.make_room(std::array{std::span<StateKey>(kept)});
  EXPECT_EQ(kept[0], 0u);
  EXPECT_EQ(kept[1], key(0x1010));
  EXPECT_EQ(kept[2], key(0x1020));
  EXPECT_EQ(rows_.beside()[effect].pushes.keys[0], key(0x1030));
  EXPECT_EQ(rows_.beside()[effect].pushes.keys[1], 0u);
  EXPECT_EQ(rows_.state(kept[1]).ip, 0x1010u);
}

TEST_F(RowMemory, EveryOutcomeLiesWhereTheFastPathLooksOnceThereIsRoom) {
  for (std::uint64_t from : {0x1000, 0x1001})
    for (unsigned bits = 4; bits < 256; bits += 2)
      put_outcome(from, static_cast<std::uint8_t>(bits), 0x2000);
  EXPECT_FALSE(rows_.is_crowded());
  rows_.note_detours(100'000);
  EXPECT_TRUE(rows_.is_crowded());
  rows_.make_room({});
  EXPECT_FALSE(rows_.is_crowded());
  for (const auto& [symbol, to] : outcomes_) {
    auto bits = static_cast<std::uint8_t>(symbol.second);
    std::uint64_t row = rows_.outcomes()[Rows::slot_of(key(symbol.first), bits)];
    EXPECT_EQ(row & RowBits::kTagMask, bits);
  }
}

TEST_F(RowMemory, TakesNoStatesRowForAnothersThoughTheirWindowsOverlap) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    std::uint64_t from = 0x1000 + random() % 1000;
    put_outcome(from, static_cast<std::uint8_t>(4 + 2 * (random() % 126)), 0x1000);
    if (i % 1000 == 999) rows_.make_room({});
  }
  for (std::uint64_t from = 0x1000; from < 0x1000 + 1000; ++from)
    for (unsigned bits = 4; bits < 256; bits += 2)
      EXPECT_EQ(rows_.find(key(from), static_cast<std::uint8_t>(bits)) != 0,
                outcomes_.contains({from, bits}));
}

TEST_F(RowMemory, IsFullBeforeItsWindowsAre) {
  std::uint64_t ip = 0x1000;
  while (!rows_.is_full()) {
    key(ip++);
    if (rows_.is_crowded()) rows_.make_room({});
  }
  EXPECT_LE(ip - 0x1000, Rows::kMaxStates);
  rows_.make_room({});
  EXPECT_EQ(rows_.state(key(0x1234)).ip, 0x1234u);
  rows_.drop();
  part_ = {};
  EXPECT_FALSE(rows_.is_full());
}

}  // namespace
}  // namespace tailtrace::pt
