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

}  // namespace tailtrace::pt
