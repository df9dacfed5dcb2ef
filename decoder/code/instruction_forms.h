// InstructionForms: remembers what instructions of one form are, so that a program's code is
// decoded at a few nanoseconds an instruction.
//
// How long an instruction is and what it does to control flow depends on its prefixes, its opcode,
// its ModRM byte and, for the length, on whether a SIB byte asks for a displacement; not on its
// immediate or displacement. (SDM volume 2, section 2.1.) Programs use a few thousand such forms.
// decode_instruction() says what each of them is, the first time; uncommon ones are left to it
// always: other prefixes than one of 66, F2, F3 and a REX, and opcodes beyond the maps 0 and 0F.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "decoder/code/instruction.h"

namespace tailtrace {

class InstructionForms {
 public:
  explicit InstructionForms(CodeMode mode) : mode_(mode), forms_(std::make_unique<Table>()) {}

  // As decode_instruction() in the mode of this object. False: no instruction, and `insn` is empty.
  bool decode(ByteSpan bytes, Address address, Instruction& insn);

 private:
  // Direct-mapped: bounded, and a collision only costs decoding again.
  static constexpr unsigned kSlotBits = 14;

  struct Form {
    std::uint32_t key = 0;  // 0: empty
    std::uint8_t size_bytes = 0;
    std::uint8_t distance_bytes = 0;  // of a direct branch's target, which ends it; 0: no target
    InstructionClass kind = InstructionClass::kOther;
  };
  using Table = std::array<Form, std::size_t{1} << kSlotBits>;

  bool decode_uncommon(ByteSpan bytes, Address address, Instruction& insn) const;
  bool learn(Form& form, std::uint32_t key, ByteSpan bytes, Address address, Instruction& insn);

  const CodeMode mode_;
  std::unique_ptr<Table> forms_;
};

}  // namespace tailtrace
