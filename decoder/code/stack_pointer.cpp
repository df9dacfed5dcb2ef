#include "decoder/code/stack_pointer.h"

namespace tailtrace {
namespace {

enum Register : unsigned { kRbx = 3, kRsp = 4, kRbp = 5, kR12 = 12 };
enum Opcode : std::uint8_t {
  kPopRsp = 0x5c,
  kXchg = 0x87,
  kMovToRm = 0x89,
  kMovFromRm = 0x8b,
  kXchgRaxRsp = 0x94,
};
constexpr unsigned kIsRegister = 3;  // of ModRM.mod

// The fields of ModRM, with their bits of REX.
struct Operands {
  unsigned mod = 0;
  unsigned reg = 0;
  unsigned rm = 0;
  unsigned base = 0;  // that addresses memory, as SIB has it where there is one
};

Operands operands_of(ByteSpan bytes, unsigned rex) {
  const unsigned modrm = bytes[0], rex_r = (rex & 4) << 1, rex_b = (rex & 1) << 3;
  Operands of{modrm >> 6, (modrm >> 3 & 7) | rex_r, (modrm & 7) | rex_b, 0};
  const bool has_sib = of.mod != kIsRegister && (of.rm & 7) == 4 && bytes.size() > 1;
  of.base = has_sib ? (bytes[1] & 7u) | rex_b : of.rm;
  return of;
}

// What a function keeps for its caller it may have put its own stack pointer into.
bool is_kept(unsigned reg) { return (reg >= kRbx && reg <= kRbp) || reg >= kR12; }

// Without a displacement RBP stands for no base.
bool is_in_frame(const Operands& of) { return of.base == kRsp || (of.base == kRbp && of.mod != 0); }

}  // namespace

bool loads_stack_pointer(ByteSpan instruction) {
  unsigned rex = 0;
  if (!instruction.empty() && (instruction[0] & 0xf0) == 0x40) {
    rex = instruction[0];
    instruction = instruction.subspan(1);
  }
  if (instruction.empty()) return false;
  if (instruction[0] == kPopRsp || instruction[0] == kXchgRaxRsp) return (rex & 1) == 0;
  if (instruction.size() < 2) return false;
  const Operands of = operands_of(instruction.subspan(1), rex);
  const bool of_registers = of.mod == kIsRegister;
  switch (instruction[0]) {
    case kMovFromRm:
      return of.reg == kRsp && !(of_registers ? is_kept(of.rm) : is_in_frame(of));
    case kMovToRm:
      return of_registers && of.rm == kRsp && !is_kept(of.reg);
    case kXchg:
      return of.reg == kRsp || (of_registers && of.rm == kRsp);
    default:
      return false;
  }
}

}  // namespace tailtrace
