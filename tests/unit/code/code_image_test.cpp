#include "decoder/code/code_image.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

Bytes filled(std::size_t size, std::uint8_t value) { return Bytes(size, value); }

TEST(CodeImage, ALaterSectionHidesAnEarlierOneFromItsEpochOn) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, filled(0x100, 1)));
  ASSERT_TRUE(image.add({0x1040}, filled(0x10, 2), {3}));
  EXPECT_EQ(image.at({0x1040}, 1, {2})[0], 1);
  EXPECT_EQ(image.at({0x1040}, 1, {3})[0], 2);
  EXPECT_EQ(image.at({0x1050}, 1, {3})[0], 1);
  EXPECT_EQ(image.at({0x103f}, 100, {3}).size(), 1u);
  Bytes out(0x100);
  EXPECT_EQ(image.read({0x1000}, out, {3}), 0x100u);
  EXPECT_EQ(out[0x3f], 1);
  EXPECT_EQ(out[0x40], 2);
  EXPECT_EQ(out[0x50], 1);
}

TEST(CodeImage, WhatIsForgottenIsNotKnownButItsPastIs) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, filled(0x100, 1)));
  ASSERT_TRUE(image.forget({0x1000}, 0x80, {1}));
  EXPECT_FALSE(image.at({0x1000}, 1, {0}).empty());
  EXPECT_TRUE(image.at({0x1000}, 1, {1}).empty());
  EXPECT_FALSE(image.at({0x1080}, 1, {1}).empty());
}

TEST(CodeImage, NothingIsKnownBeforeASectionsFirstEpoch) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, filled(0x10, 1), {5}));
  EXPECT_TRUE(image.at({0x1000}, 1, {4}).empty());
  EXPECT_TRUE(image.at({0xfff}, 1, {5}).empty());
  EXPECT_TRUE(image.at({0x1010}, 1, {5}).empty());
}

TEST(CodeImage, KnowsASectionAroundAnAddressToWhereALaterOneCutsIt) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, filled(0x100, 1)));
  ASSERT_TRUE(image.add({0x1040}, filled(0x10, 2), {3}));
  const CodeImage::Known behind = image.around({0x1080}, {3});
  EXPECT_EQ(behind.begin.value, 0x1050u);
  EXPECT_EQ(behind.bytes.size(), 0xb0u);
  EXPECT_EQ(image.around({0x104f}, {3}).begin.value, 0x1040u);
  EXPECT_EQ(image.around({0x104f}, {3}).bytes[0xf], 2);
  EXPECT_TRUE(image.around({0x1100}, {3}).bytes.empty());
}

TEST(CodeImage, RefusesWhatWrapsAround) {
  CodeImage image;
  EXPECT_EQ(image.add({~0ull - 3}, filled(8, 1)).error().code, ErrorCode::kUsage);
}

TEST(CodeImage, MayEndWhereTheAddressSpaceEnds) {
  CodeImage image;
  ASSERT_TRUE(image.add({~0ull - 7}, filled(8, 1)));
  EXPECT_EQ(image.around({~0ull - 3}, {0}).bytes.size(), 7u);
  EXPECT_TRUE(image.around({~0ull}, {0}).bytes.empty());
}

TEST(CodeImage, AnotherProgramsImageBehindOneHasEpochsOfItsOwn) {
  CodeImage first, second, both;
  ASSERT_TRUE(first.add({0x1000}, filled(0x100, 1)));
  ASSERT_TRUE(first.add({0x3000}, filled(0x100, 2), {1}));
  ASSERT_TRUE(second.add({0x1080}, filled(0x100, 3)));
  ASSERT_TRUE(second.add({0x1080}, filled(0x10, 4), {2}));
  const Epoch one = both.append(first), two = both.append(second);
  EXPECT_EQ(one.value, 0u);
  EXPECT_EQ(two.value, 2u);
  EXPECT_EQ(both.newest().value, 4u);
  for (auto [image, base] : {std::pair{&first, one}, {&second, two}})
    for (std::uint32_t epoch = 0; epoch <= image->newest().value; ++epoch)
      for (std::uint64_t at = 0x0f00; at < 0x3200; at += 8) {
        ByteSpan alone = image->at({at}, 1, {epoch}),
                 joined = both.at({at}, 1, {base.value + epoch});
        ASSERT_EQ(alone.empty(), joined.empty()) << at << " in " << epoch;
        if (!alone.empty()) {
          ASSERT_EQ(alone[0], joined[0]) << at << " in " << epoch;
        }
      }
}

}  // namespace
}  // namespace tailtrace
