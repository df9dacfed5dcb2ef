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
