#include "decoder/history/queries/sequence_diff.h"

#include <gtest/gtest.h>

#include <random>

namespace tailtrace {
namespace {

using Sequence = std::vector<std::uint32_t>;
constexpr std::uint64_t kNoLimit = 1ull << 40;

// Insertions and deletions at least, by the table of all prefixes.
std::size_t least_changes(const Sequence& a, const Sequence& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0)
        table[i][j] = i + j;
      else if (a[i - 1] == b[j - 1])
        table[i][j] = table[i - 1][j - 1];
      else
        table[i][j] = 1 + std::min(table[i - 1][j], table[i][j - 1]);
    }
  return table[a.size()][b.size()];
}

// What is between the changes is the same; returns how much they insert and delete.
std::size_t checked_changes(const Sequence& a, const Sequence& b,
                            const std::vector<SequenceChange>& changes) {
  std::size_t at_a = 0, at_b = 0, count = 0;
  auto same_until = [&](std::size_t end_a, std::size_t end_b) {
    ASSERT_LE(at_a, end_a);
    ASSERT_EQ(end_a - at_a, end_b - at_b);
    for (; at_a < end_a; ++at_a, ++at_b) ASSERT_EQ(a[at_a], b[at_b]);
  };
  for (const SequenceChange& change : changes) {
    same_until(change.a_first, change.b_first);
    count += change.a_end - change.a_first + change.b_end - change.b_first;
    EXPECT_GT(change.a_end - change.a_first + change.b_end - change.b_first, 0u);
    at_a = change.a_end;
    at_b = change.b_end;
  }
  same_until(a.size(), b.size());
  return count;
}

Sequence random_sequence(std::mt19937_64& random, std::size_t letters) {
  Sequence sequence(random() % 40);
  for (auto& letter : sequence) letter = static_cast<std::uint32_t>(random() % letters);
  return sequence;
}

TEST(SequenceDiff, HasTheFewestChangesThereCanBe) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    Sequence a = random_sequence(random, 2 + random() % 6), b = random_sequence(random, 4);
    if (i % 3 == 0) b = a;
    if (i % 3 == 0)
      for (auto& letter : b)
        if (random() % 8 == 0) letter = 9;
    auto changes = diff_sequences(a, b, kNoLimit);
    ASSERT_EQ(checked_changes(a, b, changes), least_changes(a, b)) << i;
  }
}

TEST(SequenceDiff, OfTheSameIsNothingAndOfNothingIsAll) {
  EXPECT_TRUE(diff_sequences(Sequence{}, Sequence{}, kNoLimit).empty());
  EXPECT_TRUE(diff_sequences(Sequence{1, 2}, Sequence{1, 2}, kNoLimit).empty());
  EXPECT_EQ(diff_sequences(Sequence{1, 2}, Sequence{}, kNoLimit),
            (std::vector<SequenceChange>{{0, 2, 0, 0}}));
}

TEST(SequenceDiff, EndsSoonWhereAlmostAllIsDifferent) {
  std::mt19937_64 random(2);
  Sequence a(200000), b(200000);
  for (auto& letter : a) letter = static_cast<std::uint32_t>(random() % 1000);
  for (auto& letter : b) letter = static_cast<std::uint32_t>(random() % 1000);
  auto changes = diff_sequences(a, b, 1 << 20);
  checked_changes(a, b, changes);
  EXPECT_LE(changes.size(), 2u);
}

TEST(SequenceDiff, OfWhatHasLittleInCommonStillHasTheFewestChanges) {
  Sequence a, b, kept{1, 2, 3, 4, 5};
  for (std::uint32_t i = 0; i < 20000; ++i) {
    a.push_back(i % 1000 == 0 ? kept[i / 1000 % 5] : 10 + 2 * i);
    b.push_back(i % 1500 == 7 ? kept[i / 1500 % 5] : 11 + 2 * i);
  }
  auto changes = diff_sequences(a, b, 1 << 10);
  EXPECT_EQ(checked_changes(a, b, changes), 40000 - 2 * 14);
}

}  // namespace
}  // namespace tailtrace
