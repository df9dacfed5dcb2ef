#include "decoder/code/code_reader.h"

#include <algorithm>

namespace tailtrace {

CodeReader::CodeReader(const CodeImage& image, CodeMode mode)
    : image_(image), mode_(mode), slots_(kSlots) {}

void CodeReader::set_epoch(Epoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::fill(slots_.begin(), slots_.end(), Instruction{});
}

std::optional<Instruction> CodeReader::at(Address address) {
  Instruction& slot = slots_[slot_of(address)];
  if (slot.size_bytes != 0 && slot.address == address) return slot;
  std::uint8_t bytes[kMaxInstructionSize_bytes];
  std::size_t size = image_.read(address, bytes, epoch_);
  std::optional<Instruction> insn = decode_instruction({bytes, size}, address, mode_);
  if (insn) slot = *insn;
  return insn;
}

Bytes CodeReader::bytes_of(const Instruction& instruction) const {
  Bytes bytes(instruction.size_bytes);
  bytes.resize(image_.read(instruction.address, bytes, epoch_));
  return bytes;
}

}  // namespace tailtrace
