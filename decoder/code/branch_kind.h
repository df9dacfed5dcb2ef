// What an executed branch instruction is called in a record: the one place where instruction
// classes and record kinds meet.
//
// Threading: pure functions.
#pragma once

#include "decoder/code/instruction.h"
#include "decoder/record/branch_record.h"

namespace tailtrace {

// kDiscontinuity for a class that is no branch (Instruction::is_branch): whoever left it otherwise
// than by falling through was moved.
constexpr RecordKind branch_kind(InstructionClass branch) {
  switch (branch) {
    case InstructionClass::kConditional:
      return RecordKind::kConditional;
    case InstructionClass::kJump:
      return RecordKind::kJump;
    case InstructionClass::kCall:
      return RecordKind::kCall;
    case InstructionClass::kIndirectJump:
      return RecordKind::kIndirectJump;
    case InstructionClass::kIndirectCall:
      return RecordKind::kIndirectCall;
    case InstructionClass::kReturn:
      return RecordKind::kReturn;
    case InstructionClass::kFarJump:
      return RecordKind::kFarJump;
    case InstructionClass::kFarCall:
      return RecordKind::kFarCall;
    case InstructionClass::kFarReturn:
      return RecordKind::kFarReturn;
    case InstructionClass::kSystemCall:
      return RecordKind::kSystemCall;
    case InstructionClass::kSystemReturn:
      return RecordKind::kSystemReturn;
    default:
      return RecordKind::kDiscontinuity;
  }
}

}  // namespace tailtrace
