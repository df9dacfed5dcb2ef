// One x86 instruction as far as control flow is concerned.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace {

enum class InstructionClass : std::uint8_t {
  kOther,         // falls through
  kRepString,     // falls through; repeats itself: recorders may see each iteration
  kConditional,   // Jcc, JrCXZ, LOOPcc
  kJump,          // direct near JMP
  kCall,          // direct near CALL
  kIndirectJump,  // near, through a register or memory
  kIndirectCall,
  kReturn,  // near RET
  kFarJump,
  kFarCall,
  kFarReturn,     // RETF, IRET, UIRET, ERETU, ERETS
  kSystemCall,    // SYSCALL, SYSENTER, INT n, INT1, INT3, INTO
  kSystemReturn,  // SYSRET, SYSEXIT
  kVmEntry,       // VMLAUNCH, VMRESUME
  kVmCall,        // VMCALL: falls through unless it exits
  kMovCr3,        // falls through; PIP follows in a trace
  kPtwrite,       // falls through; PTW may follow in a trace
};

constexpr bool is_near_jump(InstructionClass kind) {
  return kind == InstructionClass::kJump || kind == InstructionClass::kIndirectJump;
}
constexpr bool is_near_call(InstructionClass kind) {
  return kind == InstructionClass::kCall || kind == InstructionClass::kIndirectCall;
}

// "conditional", "indirect-call", ...: a word for machines.
std::string_view class_name(InstructionClass kind);

enum class CodeMode : std::uint8_t { k16, k32, k64 };

struct Instruction {
  Address address;
  Address target;  // of direct branches, else 0; cut to the mode's width
  std::uint8_t size_bytes = 0;
  InstructionClass kind = InstructionClass::kOther;

  Address next() const { return address + size_bytes; }
  // Never continues at next() by itself.
  bool ends_run() const {
    return kind >= InstructionClass::kJump && kind <= InstructionClass::kSystemReturn;
  }
  constexpr bool is_branch() const {
    return kind >= InstructionClass::kConditional && kind <= InstructionClass::kSystemReturn;
  }
};

// The longest instruction (SDM volume 2, section 2.3.11).
constexpr std::size_t kMaxInstructionSize_bytes = 15;

// What of a direct branch at `from` its target keeps: as many bits as its operand has. But 16-bit
// code beyond 64 KiB has linear addresses, which the segment's base is part of, and that is not cut
// (SDM volume 3, "Packet Decoding of RIP versus LIP").
constexpr std::uint64_t target_mask(Address from, unsigned operand_bits, CodeMode mode) {
  if (mode == CodeMode::k64) return ~0ull;
  const bool is_linear = mode == CodeMode::k16 && from.value > 0xffff;
  return operand_bits == 16 && !is_linear ? 0xffff : 0xffffffff;
}

// Decodes the instruction that `bytes` begins with. Nothing when the bytes are no instruction or
// end inside it.
std::optional<Instruction> decode_instruction(ByteSpan bytes, Address address,
                                              CodeMode mode = CodeMode::k64);

// Intel syntax, as "call 0x401136"; "(bad)" for what is no instruction.
std::string disassemble(ByteSpan bytes, Address address, CodeMode mode = CodeMode::k64);

}  // namespace tailtrace
