// Which instructions leave for another privilege or machine: tracing may end with them, and where
// they lead is told by packets of its own.
//
// Threading: pure functions.
#pragma once

#include "decoder/code/instruction.h"

namespace tailtrace::pt {

constexpr bool is_far(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::kFarJump:
    case InstructionClass::kFarCall:
    case InstructionClass::kFarReturn:
    case InstructionClass::kSystemCall:
    case InstructionClass::kSystemReturn:
    case InstructionClass::kVmEntry:
    case InstructionClass::kVmCall:
      return true;
    default:
      return false;
  }
}

// Whether control may go elsewhere than behind it.
constexpr bool may_branch(InstructionClass kind) {
  return kind >= InstructionClass::kConditional && kind <= InstructionClass::kVmCall;
}

// Where tracing was left for with the instruction, of which a packet says that it led to `told`; 0
// unknown. A conditional branch leads to its target or behind itself: else packets were lost.
inline Address left_for(const Instruction& last, Address told) {
  switch (last.kind) {
    case InstructionClass::kJump:
    case InstructionClass::kCall:
      return last.target;
    case InstructionClass::kConditional:
      return told == last.target || told == last.next() ? told : Address{};
    default:
      return told;
  }
}

}  // namespace tailtrace::pt
