// A form that is remembered says what decoding its bytes anew says.
#include "decoder/code/instruction_forms.h"

#include <gtest/gtest.h>

#include <random>

namespace tailtrace {
namespace {

class Forms : public testing::TestWithParam<CodeMode> {
 protected:
  void expect_as_decoded(ByteSpan bytes) {
    Address at{0x7f0012345678 & (GetParam() == CodeMode::k16 ? 0xffff : ~0ull)};
    std::optional<Instruction> expected = decode_instruction(bytes, at, GetParam());
    const Decoded got = forms_.decode(bytes, at);
    ASSERT_EQ(static_cast<bool>(got), expected.has_value()) << to_hex(bytes);
    if (!got) return;
    EXPECT_EQ(got.size_bytes, expected->size_bytes) << to_hex(bytes);
    EXPECT_EQ(got.kind, expected->kind) << to_hex(bytes);
    EXPECT_EQ(got.target, expected->target) << to_hex(bytes);
  }

  // The same beginning with other immediates and displacements behind it.
  void expect_whatever_follows(Bytes bytes) {
    const std::size_t head = bytes.size();
    bytes.resize(kMaxInstructionSize_bytes);
    for (int i = 0; i < 3; ++i) {
      for (std::size_t at = head; at < bytes.size(); ++at)
        bytes[at] = static_cast<std::uint8_t>(random_());
      expect_as_decoded(bytes);
    }
  }

  InstructionForms forms_{GetParam()};
  std::mt19937 random_{1};
};

TEST_P(Forms, AreWhatTheBytesAreForEveryOpcode) {
  const Bytes prefixes[] = {{},     {0x66}, {0xf2},       {0xf3},      {0x48},
                            {0x41}, {0x44}, {0x66, 0x4d}, {0xf3, 0x48}};
  for (const Bytes& prefix : prefixes)
    for (unsigned opcode = 0; opcode < 512; ++opcode)
      for (unsigned modrm = 0; modrm < 256; modrm += modrm < 0xc0 ? 4 : 3) {
        Bytes bytes = prefix;
        if (opcode >= 256) bytes.push_back(0x0f);
        bytes.push_back(static_cast<std::uint8_t>(opcode));
        bytes.push_back(static_cast<std::uint8_t>(modrm));
        expect_whatever_follows(std::move(bytes));
      }
}

TEST_P(Forms, AreWhatAnyBytesAre) {
  for (int i = 0; i < 30000; ++i) expect_whatever_follows({});
}

TEST_P(Forms, EndWhereTheBytesEnd) {
  for (const char* hex : {"e800010000", "488b05aabbccdd", "0f8410000000",
                          "48c7042501000000020000"
                          "00"}) {
    Bytes bytes = *from_hex(hex);
    for (std::size_t size = bytes.size(); size != 0; --size)
      expect_as_decoded(ByteSpan(bytes).first(size));
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Forms, testing::Values(CodeMode::k64, CodeMode::k32, CodeMode::k16),
                         [](const auto& info) {
                           return info.param == CodeMode::k64   ? "Of64Bits"
                                  : info.param == CodeMode::k32 ? "Of32Bits"
                                                                : "Of16Bits";
                         });

}  // namespace
}  // namespace tailtrace
