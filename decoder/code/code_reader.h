// CodeReader: instructions out of a CodeImage, one by one, remembered.
//
// Whoever follows a path through code (synthesis, history, block lists) asks for the same
// instructions again and again; this is the one place that decodes them.
//
// Threading: one thread at a time; make one per thread. The image must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/code/instruction.h"

namespace tailtrace {

class CodeReader {
 public:
  explicit CodeReader(const CodeImage& image, CodeMode mode = CodeMode::k64);

  // From now on the code of this epoch is read.
  void set_epoch(Epoch epoch);
  Epoch epoch() const { return epoch_; }

  // The instruction at an address; nothing when its bytes are not known or are no instruction
  // (known() tells which).
  std::optional<Instruction> at(Address address);

  // Whether any byte at the address is known.
  bool known(Address address) const { return !image_.at(address, 1, epoch_).empty(); }

  // The instruction's bytes; empty when they are not known.
  Bytes bytes_of(const Instruction& instruction) const;

 private:
  // A direct-mapped memory: bounded, and a collision only costs decoding again.
  static constexpr std::size_t kSlots = 1 << 15;
  static std::size_t slot_of(Address address) {
    return (address.value ^ (address.value >> 15)) & (kSlots - 1);
  }

  const CodeImage& image_;
  CodeMode mode_;
  Epoch epoch_;
  std::vector<Instruction> slots_;  // size_bytes 0: empty
};

}  // namespace tailtrace
