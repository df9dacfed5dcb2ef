#include "decoder/base/bytes.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(Hex, IsWrittenInLowerCaseAndReadInEither) {
  const Bytes bytes = {0x00, 0x0f, 0xa0, 0xff};
  EXPECT_EQ(to_hex(bytes), "000fa0ff");
  EXPECT_EQ(from_hex("000fA0Ff"), bytes);
  EXPECT_EQ(to_hex({}), "");
  EXPECT_EQ(from_hex(""), Bytes{});
}

TEST(Hex, EveryByteSurvives) {
  Bytes bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
}

TEST(Hex, IsRefusedWhenItIsNone) {
  for (const char* bad : {"0", "0g", "g0", " 00", "00 ", "0x00", "000", "\xff\xff"})
    EXPECT_FALSE(from_hex(bad)) << bad;
}

TEST(Hex, NumbersFillAtMost64Bits) {
  EXPECT_EQ(parse_hex("0"), 0u);
  EXPECT_EQ(parse_hex("00ffFF"), 0xffffu);
  EXPECT_EQ(parse_hex("ffffffffffffffff"), ~std::uint64_t{0});
  EXPECT_EQ(parse_hex("0000000000000000000001"), 1u);
  for (const char* bad : {"", "0x1", "-1", "+1", " 1", "1 ", "g", "10000000000000000"})
    EXPECT_FALSE(parse_hex(bad)) << bad;
}

TEST(Load, TakesLittleEndianFromAnyOffset) {
  const Bytes bytes = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
  EXPECT_EQ(load<std::uint8_t>(bytes), 0xff);
  EXPECT_EQ(load<std::uint16_t>(bytes, 1), 0x0201);
  EXPECT_EQ(load<std::uint64_t>(bytes, 1), 0x0807060504030201u);
}

}  // namespace
}  // namespace tailtrace
