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

// Whatever was read last, what lies before, behind and in the middle of it is read as it is.
TEST(CodeReader, ReadsBehindAndBeforeWhatItReadLast) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, Bytes(0x100, 0x90)));
  ASSERT_TRUE(image.add({0x1040}, Bytes(0x20, 0xc3)));
  ASSERT_TRUE(image.add({0x1100}, Bytes(0x100, 0xcc)));
  CodeReader reader(image);
  for (std::uint64_t at : {0x1000, 0x1040, 0x103f, 0x1060, 0x1100, 0x10ff, 0x1051, 0x11ff}) {
    const InstructionClass kind = at >= 0x1100                  ? InstructionClass::kSystemCall
                                  : at >= 0x1040 && at < 0x1060 ? InstructionClass::kReturn
                                                                : InstructionClass::kOther;
    EXPECT_EQ(reader.read({at}).kind, kind) << at;
    EXPECT_EQ(reader.read({at}).size_bytes, 1) << at;
  }
  EXPECT_FALSE(reader.read({0x0fff}));
  EXPECT_FALSE(reader.read({0x1200}));
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
      ASSERT_EQ(reader.read({behind + 2}).size_bytes, 1);
    }
  EXPECT_FALSE(reader.read({kPages * kPage_bytes}));
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
