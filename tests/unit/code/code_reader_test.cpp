#include "decoder/code/code_reader.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(CodeReader, ReadsAcrossASeamOfSections) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, *from_hex("e8")));
  ASSERT_TRUE(image.add({0x1001}, *from_hex("00010000")));
  CodeReader reader(image);
  auto insn = reader.at({0x1000});
  ASSERT_TRUE(insn);
  EXPECT_EQ(insn->target.value, 0x1105u);
  EXPECT_EQ(to_hex(reader.bytes_of(*insn)), "e800010000");
}

TEST(CodeReader, ShowsTheCodeOfTheEpochAskedFor) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, *from_hex("90")));
  ASSERT_TRUE(image.add({0x1000}, *from_hex("c3"), {1}));
  CodeReader reader(image);
  EXPECT_EQ(reader.at({0x1000})->kind, InstructionClass::kOther);
  reader.set_epoch({1});
  EXPECT_EQ(reader.at({0x1000})->kind, InstructionClass::kReturn);
  reader.set_epoch({0});
  EXPECT_EQ(reader.at({0x1000})->kind, InstructionClass::kOther);
}

// More pages than are remembered, from their first byte to their last, which lies across a seam.
TEST(CodeReader, ReadsEveryByteOfManyPages) {
  constexpr std::uint64_t kPages = 3000, kPage_bytes = 4096;
  CodeImage image;
  for (std::uint64_t i = 0; i < kPages; ++i) {
    Bytes page(kPage_bytes, 0x90);
    page[0] = 0x01;  // of the jump that the page before ends with
    page.back() = 0xeb;
    ASSERT_TRUE(image.add({i * kPage_bytes}, page));
  }
  CodeReader reader(image);
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t i = 0; i + 1 < kPages; ++i) {
      const std::uint64_t behind = (i + 1) * kPage_bytes;
      ASSERT_EQ(reader.at({behind - 2})->kind, InstructionClass::kOther) << i;
      ASSERT_EQ(reader.at({behind - 1})->target.value, behind + 2) << i;
      Instruction insn;
      ASSERT_NE(reader.read({behind + 2}, insn), nullptr);
      ASSERT_EQ(insn.next().value, behind + 3);
    }
  Instruction none{{1}, {2}, 3};
  EXPECT_EQ(reader.read({kPages * kPage_bytes}, none), nullptr);
  EXPECT_EQ(none.size_bytes, 0);
}

TEST(CodeReader, TellsUnknownBytesFromBadOnes) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, *from_hex("0606")));
  CodeReader reader(image);
  EXPECT_FALSE(reader.at({0x1000}));
  EXPECT_TRUE(reader.known({0x1000}));
  EXPECT_FALSE(reader.at({0x2000}));
  EXPECT_FALSE(reader.known({0x2000}));
}

}  // namespace
}  // namespace tailtrace
