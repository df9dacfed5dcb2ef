#include "decoder/code/branch_kind.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

RecordKind kind_of_code(std::vector<std::uint8_t> bytes) {
  return branch_kind(decode_instruction(bytes, {0x1000}).value().kind);
}

TEST(BranchKind, IsThatOfTheInstruction) {
  EXPECT_EQ(kind_of_code({0x74, 0x00}), RecordKind::kConditional);         // JZ
  EXPECT_EQ(kind_of_code({0xe2, 0xfe}), RecordKind::kConditional);         // LOOP
  EXPECT_EQ(kind_of_code({0xeb, 0x00}), RecordKind::kJump);                // JMP
  EXPECT_EQ(kind_of_code({0xe8, 0, 0, 0, 0}), RecordKind::kCall);          // CALL
  EXPECT_EQ(kind_of_code({0xc3}), RecordKind::kReturn);                    // RET
  EXPECT_EQ(kind_of_code({0xff, 0xe0}), RecordKind::kIndirectJump);        // JMP RAX
  EXPECT_EQ(kind_of_code({0xff, 0xd0}), RecordKind::kIndirectCall);        // CALL RAX
  EXPECT_EQ(kind_of_code({0xff, 0x28}), RecordKind::kFarJump);             // JMP FAR [RAX]
  EXPECT_EQ(kind_of_code({0xff, 0x18}), RecordKind::kFarCall);             // CALL FAR [RAX]
  EXPECT_EQ(kind_of_code({0x48, 0xcf}), RecordKind::kFarReturn);           // IRETQ
  EXPECT_EQ(kind_of_code({0x0f, 0x05}), RecordKind::kSystemCall);          // SYSCALL
  EXPECT_EQ(kind_of_code({0x48, 0x0f, 0x07}), RecordKind::kSystemReturn);  // SYSRET
}

TEST(BranchKind, OfWhatIsNoBranchIsADiscontinuity) {
  EXPECT_EQ(kind_of_code({0x90}), RecordKind::kDiscontinuity);              // NOP
  EXPECT_EQ(kind_of_code({0xf3, 0xa4}), RecordKind::kDiscontinuity);        // REP MOVSB
  EXPECT_EQ(kind_of_code({0x0f, 0x01, 0xc1}), RecordKind::kDiscontinuity);  // VMCALL
}

}  // namespace
}  // namespace tailtrace
