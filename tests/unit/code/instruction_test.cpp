#include "decoder/code/instruction.h"

#include <gtest/gtest.h>

#include "decoder/code/instruction_forms.h"

namespace tailtrace {
namespace {

struct Case {
  const char* what;
  const char* hex;
  InstructionClass kind;
  std::size_t size;
  std::uint64_t target;
  CodeMode mode = CodeMode::k64;
};

// Encodings and classes as in the SDM, volume 2.
const Case kCases[] = {
    {"nop", "90", InstructionClass::kOther, 1, 0},
    {"jne", "7505", InstructionClass::kConditional, 2, 0x1007},
    {"long je backwards", "0f84faffffff", InstructionClass::kConditional, 6, 0x1000},
    {"loop", "e2fe", InstructionClass::kConditional, 2, 0x1000},
    {"jrcxz", "e300", InstructionClass::kConditional, 2, 0x1002},
    {"jmp", "eb10", InstructionClass::kJump, 2, 0x1012},
    {"call", "e800000000", InstructionClass::kCall, 5, 0x1005},
    {"call rax", "ffd0", InstructionClass::kIndirectCall, 2, 0},
    {"notrack jmp rax", "3effe0", InstructionClass::kIndirectJump, 3, 0},
    {"jmp [rip]", "ff2500000000", InstructionClass::kIndirectJump, 6, 0},
    {"ret", "c3", InstructionClass::kReturn, 1, 0},
    {"repz ret", "f3c3", InstructionClass::kReturn, 2, 0},
    {"bnd ret 8", "f2c20800", InstructionClass::kReturn, 4, 0},
    {"retf", "cb", InstructionClass::kFarReturn, 1, 0},
    {"iretq", "48cf", InstructionClass::kFarReturn, 2, 0},
    {"call far [rax]", "ff18", InstructionClass::kFarCall, 2, 0},
    {"jmp far [rax]", "ff28", InstructionClass::kFarJump, 2, 0},
    {"syscall", "0f05", InstructionClass::kSystemCall, 2, 0},
    {"int 0x80", "cd80", InstructionClass::kSystemCall, 2, 0},
    {"int3", "cc", InstructionClass::kSystemCall, 1, 0},
    {"sysret", "480f07", InstructionClass::kSystemReturn, 3, 0},
    {"eretu", "f30f01ca", InstructionClass::kFarReturn, 4, 0},
    {"erets", "f20f01ca", InstructionClass::kFarReturn, 4, 0},
    {"clac", "0f01ca", InstructionClass::kOther, 3, 0},
    {"rep movsb", "f3a4", InstructionClass::kRepString, 2, 0},
    {"repne scasb", "f2ae", InstructionClass::kRepString, 2, 0},
    {"endbr64", "f30f1efa", InstructionClass::kOther, 4, 0},
    {"pause", "f390", InstructionClass::kOther, 2, 0},
    {"addsd, whose f2 is no repeat", "f20f58c1", InstructionClass::kOther, 4, 0},
    {"mov cr3, rax", "0f22d8", InstructionClass::kMovCr3, 3, 0},
    {"mov cr0, rax", "0f22c0", InstructionClass::kOther, 3, 0},
    {"mov cr3, r14", "410f22de", InstructionClass::kMovCr3, 4, 0},
    {"mov cr3, rax with a REX.W", "480f22d8", InstructionClass::kMovCr3, 4, 0},
    {"ptwrite rax", "f3480faee0", InstructionClass::kPtwrite, 5, 0},
    {"vmlaunch", "0f01c2", InstructionClass::kVmEntry, 3, 0},
    {"vmresume", "0f01c3", InstructionClass::kVmEntry, 3, 0},
    {"vmcall", "0f01c1", InstructionClass::kVmCall, 3, 0},
    {"xbegin", "c7f800000000", InstructionClass::kOther, 6, 0},
    {"xabort", "c6f801", InstructionClass::kOther, 3, 0},
    {"32-bit far jmp", "ea000000002300", InstructionClass::kFarJump, 7, 0, CodeMode::k32},
    {"32-bit jmp, operand size 16", "66e90000", InstructionClass::kJump, 4, 0x1004, CodeMode::k32},
};

TEST(Instruction, IsClassifiedAsTheManualSays) {
  for (const Case& c : kCases) {
    Bytes bytes = *from_hex(c.hex);
    auto insn = decode_instruction(bytes, {0x1000}, c.mode);
    ASSERT_TRUE(insn) << c.what;
    EXPECT_EQ(static_cast<int>(insn->kind), static_cast<int>(c.kind)) << c.what;
    EXPECT_EQ(insn->size_bytes, c.size) << c.what;
    EXPECT_EQ(insn->target.value, c.target) << c.what;
  }
}

// Encoded by the rules of the specification that apx.h names.
const Case kApxCases[] = {
    {"jmpabs", "d500a18877665544332211", InstructionClass::kIndirectJump, 11, 0},
    {"add r16, rax", "d51801c0", InstructionClass::kOther, 4, 0},
    {"mov r16d, [r17+0x12345678]", "d5508b8178563412", InstructionClass::kOther, 8, 0},
    {"imul r16, [rax], of map 0F", "d5c8af00", InstructionClass::kOther, 4, 0},
    {"add ax, 0x1234, to r16w", "66d51081c03412", InstructionClass::kOther, 7, 0},
    {"mov r16, 64 bits", "d518b88877665544332211", InstructionClass::kOther, 11, 0},
    {"jmp r16", "d510ffe0", InstructionClass::kIndirectJump, 4, 0},
    {"call [r16]", "d510ff10", InstructionClass::kIndirectCall, 4, 0},
    {"add rax, rbx, rcx", "62f4fc1801cb", InstructionClass::kOther, 6, 0},
    {"add eax, [r16+rbx*4+0x40], 0x11223344", "62fc7c188144984044332211", InstructionClass::kOther,
     12, 0},
    {"sub ax, bx, 0x1234", "62f47d1881eb3412", InstructionClass::kOther, 8, 0},
    {"{nf} shl eax, ebx, 3", "62f47c1cc1e303", InstructionClass::kOther, 7, 0},
    {"ctestz al, 1", "62f40404f6c001", InstructionClass::kOther, 7, 0},
    {"neg eax, [rip+1]", "62f47c18f71d01000000", InstructionClass::kOther, 10, 0},
    {"32-bit aad", "d50a", InstructionClass::kOther, 2, 0, CodeMode::k32},
};

TEST(Instruction, OfApxIsMeasured) {
  for (const Case& c : kApxCases) {
    Bytes bytes = *from_hex(c.hex);
    ASSERT_EQ(bytes.size(), c.size) << c.what;
    EXPECT_FALSE(decode_instruction(ByteSpan(bytes).first(c.size - 1), {0x1000}, c.mode)) << c.what;
    InstructionForms forms(c.mode);
    bytes.resize(32, 0x90);
    for (int round = 0; round < 2; ++round) {
      const Decoded insn = forms.decode(bytes, {0x1000});
      ASSERT_TRUE(insn) << c.what;
      EXPECT_EQ(static_cast<int>(insn.kind), static_cast<int>(c.kind)) << c.what;
      EXPECT_EQ(insn.size_bytes, c.size) << c.what;
      EXPECT_EQ(insn.target.value, c.target) << c.what;
    }
  }
}

// Opcodes that REX2 makes invalid: prefixes, escapes, and rows 4, 7, A and E, or 3 and 8 of map 0F.
TEST(Instruction, OfApxIsNotWhatRex2Forbids) {
  for (const char* hex :
       {"d50066909090", "d5000f059090", "d50040909090", "d50070909090", "d500a9909090909090909090",
        "d500e8909090909090", "d580389090909090", "d58080909090909090", "d500d5909090"})
    EXPECT_FALSE(decode_instruction(*from_hex(hex), {0x1000})) << hex;
}

TEST(Instruction, NeedsAllItsBytes) {
  EXPECT_FALSE(decode_instruction(*from_hex("e80000"), {0x1000}));
  EXPECT_FALSE(decode_instruction({}, {0x1000}));
  EXPECT_FALSE(decode_instruction(*from_hex("06"), {0x1000}));
}

TEST(Instruction, IsWrittenWithoutPadding) {
  EXPECT_EQ(disassemble(Bytes{0xf3, 0x0f, 0x01, 0xca}, {0x1000}), "eretu");
  EXPECT_EQ(disassemble(Bytes{0xf2, 0x0f, 0x01, 0xca}, {0x1000}), "erets");
  EXPECT_EQ(disassemble(*from_hex("7402"), {0x1001}), "jz 0x1005");
  EXPECT_EQ(disassemble(*from_hex("7402"), {0xfffd}, CodeMode::k16), "jz 0x1");
  EXPECT_EQ(disassemble(*from_hex("7402"), {0x1fffd}, CodeMode::k16), "jz 0x20001");
  EXPECT_EQ(disassemble(*from_hex("eb80"), {0x10}, CodeMode::k32), "jmp 0xffffff92");
  EXPECT_EQ(disassemble(*from_hex("7402"), {0xfffffffd}, CodeMode::k32), "jz 0x1");
  EXPECT_EQ(disassemble(*from_hex("c7f8f06ffbf6"), {0x8049001}, CodeMode::k32),
            "xbegin 0xfefffff7");
  EXPECT_EQ(disassemble(*from_hex("488b05efbe0000"), {0x400000}), "mov rax, [0x40bef6]");
  EXPECT_EQ(disassemble(*from_hex("06"), {0x1000}), "(bad)");
  EXPECT_EQ(disassemble(*from_hex("d500a13611400000000000"), {0x1000}), "jmpabs 0x401136");
  EXPECT_EQ(disassemble(*from_hex("d51801c0"), {0x1000}), "(apx)");
}

}  // namespace
}  // namespace tailtrace
