// Programs for traces that are made up: random code with every instruction that a decoder of Intel
// PT treats in a way of its own, in 64-, 32- and 16-bit code. What an instruction is comes from the
// table that it was written from, not from a disassembler.
//
// Threading: pure.
#pragma once

#include <map>
#include <vector>

#include "decoder/code/instruction.h"

namespace tailtrace::pt {

// Decisions out of an input's bytes; once they are used up all are the first choice.
class Choices {
 public:
  explicit Choices(ByteSpan bytes) : bytes_(bytes) {}

  bool done() const { return at_ >= bytes_.size(); }
  // REQUIRES: 0 < n <= 65536.
  unsigned below(unsigned n) {
    unsigned value = next();
    if (n > 256) value = value << 8 | next();
    return value % n;
  }
  bool one_in(unsigned n) { return below(n) == n - 1; }

 private:
  unsigned next() { return done() ? 0 : bytes_[at_++]; }

  ByteSpan bytes_;
  std::size_t at_ = 0;
};

struct LegalInstruction {
  InstructionClass kind = InstructionClass::kOther;
  std::uint8_t size_bytes = 0;
  bool loads_vmcs = false;  // VMPTRLD
  std::uint64_t target = 0;
};

class LegalProgram {
 public:
  struct Region {
    std::uint64_t base;
    CodeMode mode;
    std::vector<std::uint64_t> starts;  // of its instructions
    Bytes bytes;
  };

  explicit LegalProgram(Choices& choices);

  const std::vector<Region>& regions() const { return regions_; }
  // Null where no instruction starts.
  const LegalInstruction* at(std::uint64_t ip) const {
    auto found = code_.find(ip);
    return found == code_.end() ? nullptr : &found->second;
  }
  std::uint64_t pick(Choices& choices, CodeMode mode) const;
  CodeMode pick_mode(Choices& choices) const {
    return regions_[choices.below(static_cast<unsigned>(regions_.size()))].mode;
  }

 private:
  struct Draft;
  void add_region(Choices& choices, std::uint64_t base, CodeMode mode);
  void write(Choices& choices, Region& region, const std::vector<Draft>& drafts);

  bool virtualizes_ = false;  // VM entries and calls among its instructions
  std::map<std::uint64_t, LegalInstruction> code_;
  std::vector<Region> regions_;
};

}  // namespace tailtrace::pt
