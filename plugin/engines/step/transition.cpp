#include "plugin/engines/step/transition.h"

#include <cassert>

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

RecordKind branch_kind(const Instruction& insn, Address after) {
  switch (insn.kind) {
    case InstructionClass::kConditional:
      return RecordKind::kConditional;
    case InstructionClass::kJump:
      return RecordKind::kJump;
    case InstructionClass::kCall:
      return RecordKind::kCall;
    case InstructionClass::kReturn:
      return RecordKind::kReturn;
    case InstructionClass::kIndirectJump:
      return RecordKind::kIndirectJump;
    case InstructionClass::kIndirectCall:
      return RecordKind::kIndirectCall;
    case InstructionClass::kFarJump:
      return RecordKind::kFarJump;
    case InstructionClass::kFarCall:
      return RecordKind::kFarCall;
    case InstructionClass::kFarReturn:
      return RecordKind::kFarReturn;
    case InstructionClass::kSystemCall:
      return after == insn.next() ? RecordKind::kSystemCall : RecordKind::kSystemReturn;
    case InstructionClass::kSystemReturn:
      return RecordKind::kSystemReturn;
    default:
      assert(false && "no branch");
      return RecordKind::kNone;
  }
}

}  // namespace tailtrace
