// The memory of paths: what was taken stays, and what nobody has any more is used again.
#include "decoder/pt/fast/compact_path.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace tailtrace::pt {
namespace {

using Words = PathArray<std::uint32_t>;

void write(Words& words, std::uint32_t first, std::uint32_t count) {
  std::uint32_t* to = words.room(count);
  for (std::uint32_t i = 0; i < count; ++i) to[i] = first + i;
  words.grow(count);
}

void expect_words(const Words& words, std::uint32_t first, std::uint32_t count) {
  ASSERT_EQ(words.size(), count);
  ASSERT_EQ(words.size_bytes(), count * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(words.span()[i], first + i);
}

TEST(PathMemory, WhatWasTakenStaysWhateverIsWrittenBehindIt) {
  Words words;
  std::vector<Words> taken;
  for (std::uint32_t path = 0; path < 300; ++path) {  // several memories of 16 MiB
    write(words, path, 50'000);
    taken.push_back(words.take());
    EXPECT_EQ(words.size(), 0u);
    words.reuse();  // nothing: others have it
  }
  for (std::uint32_t path = 0; path < 300; ++path) expect_words(taken[path], path, 50'000);
}

TEST(PathMemory, APathThatOutgrowsItsMemoryLosesNothing) {
  Words words;
  write(words, 0, 10'000);
  const Words before = words.take();
  for (std::uint32_t i = 0; i < 3000; ++i) write(words, i * 3000, 3000);
  expect_words(words.take(), 0, 9'000'000);
  expect_words(before, 0, 10'000);
}

TEST(PathMemory, IsWrittenFromItsBeginAgainWhenNobodyHasAny) {
  Words words;
  write(words, 1, 1000);
  std::optional<Words> first = words.take(), second;
  const std::uint32_t* const begin = first->span().data();
  write(words, 2, 1000);
  second = words.take();
  EXPECT_EQ(second->span().data(), begin + 1000);
  first.reset();
  words.reuse();
  write(words, 3, 1000);
  expect_words(*second, 2, 1000);
  EXPECT_EQ(words.take().span().data(), begin + 2000);
  second.reset();
  words.reuse();
  write(words, 4, 1000);
  EXPECT_EQ(words.span().data(), begin);
  expect_words(words, 4, 1000);
}

TEST(PathMemory, ACopyIsNotWrittenTo) {
  Words words;
  write(words, 0, 10);
  Words taken = words.take();
  write(words, 10, 10);
  write(taken, 20, 1);  // goes elsewhere
  expect_words(words, 10, 10);
  EXPECT_EQ(taken.span()[9], 9u);
  EXPECT_EQ(taken.span()[10], 20u);
}

}  // namespace
}  // namespace tailtrace::pt
