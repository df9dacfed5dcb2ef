// Which instructions leave for another privilege or machine: tracing may end with them, and where
// they lead is told by packets of its own.
//
// Threading: a pure function.
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

}  // namespace tailtrace::pt
