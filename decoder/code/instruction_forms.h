// InstructionForms: remembers what instructions of one form are, so that a program's code is
// decoded at a few nanoseconds an instruction.
//
// How long an instruction is and what it does to control flow depends on its prefixes, its opcode,
// its ModRM byte and, for the length, on whether a SIB byte asks for a displacement; not on its
// immediate or displacement, nor on which registers its operands are. (SDM volume 2, section 2.1.)
// Programs use some hundreds of such forms.
// decode_instruction() says what each of them is, the first time; uncommon ones are left to it
// always: other prefixes than one of 66, F2, F3 and a REX, and opcodes beyond the maps 0 and 0F.
// Direct branches need no memory: but for those with a prefix, and those that count, their opcode
// tells what they are.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "decoder/code/instruction.h"

namespace tailtrace {

// An instruction without its address, which whoever asks knows. It fits into two registers: each
// instruction has to be known before the next one can be read, so that is not told through memory.
struct Decoded {
  Address target;
  std::uint8_t size_bytes = 0;  // 0: no instruction
  InstructionClass kind = InstructionClass::kOther;

  explicit operator bool() const { return size_bytes != 0; }
  Instruction at(Address address) const { return {address, target, size_bytes, kind}; }
  // The same into memory, part by part: made as a whole first, it is read before it is all there.
  void put(Address address, Instruction& insn) const {
    insn.address = address;
    insn.target = target;
    insn.size_bytes = size_bytes;
    insn.kind = kind;
  }
};

class InstructionForms {
 public:
  explicit InstructionForms(CodeMode mode);

  // As decode_instruction() in the mode of this object.
  Decoded decode(ByteSpan bytes, Address address) {
    if (bytes.size() < kMaxInstructionSize_bytes) return decode_uncommon(bytes, address);
    return decode(bytes.data(), address);
  }
  // The same. REQUIRES: kMaxInstructionSize_bytes.
  Decoded decode(const std::uint8_t* bytes, Address address);

 private:
  // Direct-mapped: bounded, and a collision only costs decoding again.
  static constexpr unsigned kSlotBits = 12;

  struct Form {
    std::uint32_t key = 0;  // 0: empty
    std::uint8_t size_bytes = 0;
    InstructionClass kind = InstructionClass::kOther;
  };
  using Table = std::array<Form, std::size_t{1} << kSlotBits>;

  Decoded short_branch(const std::uint8_t* bytes, Address address, InstructionClass kind) const;
  Decoded near_branch(const std::uint8_t* bytes, unsigned opcode_bytes, Address address,
                      InstructionClass kind) const;
  Address cut(Address target, Address from) const;
  Decoded decode_uncommon(ByteSpan bytes, Address address) const;
  Decoded learn(Form& form, std::uint32_t key, ByteSpan bytes, Address address) const;

  const CodeMode mode_;
  const std::uint64_t wide_mask_;  // of a target, where operands are not of 16 bits
  std::unique_ptr<Table> forms_;
};

}  // namespace tailtrace
