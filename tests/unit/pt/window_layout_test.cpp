// Windows across each other: no two rows in one slot, no two beginnings, and hardly a hole.
#include "decoder/pt/fast/window_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tailtrace::pt {
namespace {

using Symbols = std::vector<std::uint8_t>;

Symbols random_symbols(std::mt19937& random, std::size_t count) {
  std::set<std::uint8_t> symbols;
  while (symbols.size() < count)
    symbols.insert(static_cast<std::uint8_t>(2 + 2 * (random() % 127)));
  return {symbols.begin(), symbols.end()};
}

TEST(WindowLayout, NoTwoRowsHaveOneSlotAndHardlyAnyStaysEmpty) {
  std::mt19937 random(3);
  WindowLayout layout(8, 1u << 20);
  std::set<std::size_t> begun, taken;
  for (int i = 0; i < 5000; ++i) {
    Symbols symbols = random_symbols(random, 1 + random() % 4);
    std::size_t window = layout.add(symbols);
    EXPECT_GE(window, 8u);
    EXPECT_TRUE(begun.insert(window).second);
    for (std::uint8_t symbol : symbols)
      EXPECT_TRUE(taken.insert(window + window_offset(symbol)).second);
  }
  EXPECT_LT(*begun.rbegin(), layout.end());
  EXPECT_LT(*taken.rbegin(), layout.end());
  EXPECT_LT(layout.end(), taken.size() * 11 / 10);
}

TEST(WindowLayout, StatesWithoutRowsHaveWindowsOfTheirOwn) {
  WindowLayout layout(8, 1u << 20);
  EXPECT_EQ(layout.add({}), 8u);
  EXPECT_EQ(layout.add({}), 9u);
}

// So many rows each that windows can hardly overlap.
TEST(WindowLayout, RowsThatDoNotFitBesideEachOtherStayBehindTheLimit) {
  constexpr std::size_t kLimit = 4096;
  WindowLayout layout(8, kLimit);
  std::mt19937 random(4);
  std::set<std::size_t> begun;
  for (int i = 0; i < 1000; ++i) begun.insert(layout.add(random_symbols(random, 64)));
  EXPECT_EQ(begun.size(), 1000u);
  EXPECT_LT(layout.end(), kLimit + kWindow_slots + 1000);
}

}  // namespace
}  // namespace tailtrace::pt
