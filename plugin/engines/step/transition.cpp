#include "plugin/engines/step/transition.h"

#include <cassert>

#include "decoder/code/branch_kind.h"

namespace tailtrace {
namespace {

Transition direct(const Instruction& insn, Address after) {
  if (after == insn.target) return Transition::kBranched;
  return after == insn.address ? Transition::kNothing : Transition::kImpossible;
}

}  // namespace

Transition classify_transition(const Instruction& insn, Address after) {
  switch (insn.kind) {
    case InstructionClass::kConditional:
      // A branch to the next instruction looks the same taken or not.
      if (after == insn.next()) return Transition::kFellThrough;
      return direct(insn, after);
    case InstructionClass::kJump:
    case InstructionClass::kCall:
      return direct(insn, after);
    default:
      break;
  }
  if (after == insn.address) return Transition::kNothing;
  if (leads_anywhere(insn.kind)) return Transition::kBranched;
  return after == insn.next() ? Transition::kFellThrough : Transition::kImpossible;
}

bool leads_anywhere(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::kIndirectJump:
    case InstructionClass::kIndirectCall:
    case InstructionClass::kReturn:
    case InstructionClass::kFarJump:
    case InstructionClass::kFarCall:
    case InstructionClass::kFarReturn:
    case InstructionClass::kSystemCall:  // rt_sigreturn
    case InstructionClass::kSystemReturn:
      return true;
    default:
      return false;
  }
}

std::optional<Address> abort_target(const Instruction& insn, ByteSpan bytes) {
  // C7 F8 and 32 bits relative to the next instruction (SDM volume 2, XBEGIN).
  if (bytes.size() != 6 || bytes[0] != 0xc7 || bytes[1] != 0xf8) return std::nullopt;
  return insn.next() + static_cast<std::uint64_t>(load<std::int32_t>(bytes, 2));
}

RecordKind kind_of_transition(const Instruction& insn, Address after) {
  assert(insn.is_branch());
  bool left = insn.kind == InstructionClass::kSystemCall && after != insn.next();
  return left ? RecordKind::kSystemReturn : branch_kind(insn.kind);
}

}  // namespace tailtrace
