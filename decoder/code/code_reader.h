// CodeReader: instructions out of a CodeImage, one by one, remembered.
//
// Whoever follows a path through code (synthesis, history, block lists) asks for the same
// instructions again and again; this is the one place that decodes them.
//
// Threading: one thread at a time; make one per thread. The image must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/code/instruction.h"
#include "decoder/code/instruction_forms.h"

namespace tailtrace {

class CodeReader {
 public:
  explicit CodeReader(const CodeImage& image, CodeMode mode = CodeMode::k64);

  // From now on the code of this epoch is read.
  void set_epoch(Epoch epoch);
  Epoch epoch() const { return epoch_; }

  // The instruction at an address; nothing when its bytes are not known or are no instruction
  // (known() tells which).
  std::optional<Instruction> at(Address address) {
    const Decoded insn = find(address);
    return insn ? std::optional(insn.at(address)) : std::nullopt;
  }
  // The same without its address.
  Decoded find(Address address) {
    Instruction& slot = slots_[slot_of(address)];
    if (slot.size_bytes != 0 && slot.address == address) [[likely]]
      return {slot.target, slot.size_bytes, slot.kind};
    const Decoded insn = read(address);
    insn.put(address, slot);
    return insn;
  }
  // The same for those who remember themselves what they asked for.
  Decoded read(Address address) {
    if (newest_.holds(address)) [[likely]]
      return forms_.decode(newest_.bytes_at(address), address);
    return read_elsewhere(address);
  }

  // The instruction there will be read soon.
  void fetch_ahead(Address address) const {
    const Section& section = newest_.holds(address) ? newest_ : sections_[page_of(address)];
    if (section.holds(address)) __builtin_prefetch(section.bytes_at(address));
    __builtin_prefetch(&slots_[slot_of(address)]);
  }

  // Whether any byte at the address is known.
  bool known(Address address) const { return !image_.at(address, 1, epoch_).empty(); }

  // The instruction's bytes; empty when they are not known.
  Bytes bytes_of(const Instruction& instruction) const;

 private:
  // Direct-mapped memories: bounded, and a collision only costs decoding or looking up again.
  static constexpr std::size_t kSlots = 1 << 13;
  static std::size_t slot_of(Address address) {
    return (address.value ^ (address.value >> 13)) & (kSlots - 1);
  }
  static constexpr std::size_t kSections = 1024;
  // By page: the section that was last met there.
  static std::size_t page_of(Address address) { return address.value >> 12 & (kSections - 1); }

  // Bytes that are known without a break.
  struct Section {
    Address begin;
    const std::uint8_t* bytes = nullptr;
    std::size_t starts = 0;  // so many first bytes of instructions, which are known to their end

    bool holds(Address address) const { return address.value - begin.value < starts; }
    const std::uint8_t* bytes_at(Address address) const { return bytes + (address - begin); }
  };

  Decoded read_elsewhere(Address address);

  const CodeImage& image_;
  InstructionForms forms_;
  Epoch epoch_;
  std::vector<Instruction> slots_;  // size_bytes 0: empty
  Section newest_;                  // the last one that was asked for: most often it is asked again
  std::array<Section, kSections> sections_{};
};

}  // namespace tailtrace
