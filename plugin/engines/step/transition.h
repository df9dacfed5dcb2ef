// What one single step did, told from the instruction and from where the thread was before and
// after.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "decoder/code/instruction.h"
#include "decoder/record/branch_record.h"

namespace tailtrace {

enum class Transition {
  kNothing,      // no instruction was completed: one round of a REP, or a stop before it ran
  kFellThrough,  // it ran and execution goes on behind it
  kBranched,     // it ran and transferred control
  kImpossible,   // this instruction cannot have led there
};

Transition classify_transition(const Instruction& instruction, Address after);

// Whether the instruction may lead anywhere, so that an address proves nothing.
bool leads_anywhere(InstructionClass kind);

// Where XBEGIN goes when its transaction is aborted; nothing for any other instruction.
std::optional<Address> abort_target(const Instruction& instruction, ByteSpan bytes);

// The record kind of a branch that went to `after`.
// REQUIRES: classify_transition says kBranched.
RecordKind kind_of_transition(const Instruction& instruction, Address after);

}  // namespace tailtrace
