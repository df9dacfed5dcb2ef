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
    const Instruction* insn = find(address);
    return insn != nullptr ? std::optional(*insn) : std::nullopt;
  }
  // The same, until something else is asked for, or the epoch changes.
  const Instruction* find(Address address) {
    Instruction& slot = slots_[slot_of(address)];
    if (slot.size_bytes != 0 && slot.address == address) [[likely]]
      return &slot;
    return read(address, slot);
  }
  // The same into `insn`, which is empty where there is none, for those who remember themselves
  // what they asked for.
  const Instruction* read(Address address, Instruction& insn) {
    const Page& page = pages_[page_of(address)];
    const bool is_there = page.holds(address) ? forms_.decode(page.bytes_at(address), address, insn)
                                              : read_elsewhere(address, insn);
    return is_there ? &insn : nullptr;
  }

  // The instruction there will be read soon.
  void fetch_ahead(Address address) const {
    const Page& page = pages_[page_of(address)];
    if (page.holds(address)) __builtin_prefetch(page.bytes_at(address).data());
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
  static constexpr unsigned kPageBits = 12;
  static constexpr std::size_t kPages = 1024;
  static std::size_t page_of(Address address) { return address.value >> kPageBits & (kPages - 1); }

  // The bytes that are known without a break from the page's begin on, and somewhat behind it.
  struct Page {
    Address begin;
    const std::uint8_t* bytes = nullptr;
    std::size_t starts = 0;  // so many first bytes of instructions, which are known to their end

    bool holds(Address address) const { return address.value - begin.value < starts; }
    ByteSpan bytes_at(Address address) const {
      return {bytes + (address - begin), kMaxInstructionSize_bytes};
    }
  };

  bool read_elsewhere(Address address, Instruction& insn);

  const CodeImage& image_;
  InstructionForms forms_;
  Epoch epoch_;
  std::vector<Instruction> slots_;  // size_bytes 0: empty
  std::array<Page, kPages> pages_{};
};

}  // namespace tailtrace
