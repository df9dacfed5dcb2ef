#include "decoder/code/code_reader.h"

#include <algorithm>

namespace tailtrace {

CodeReader::CodeReader(const CodeImage& image, CodeMode mode)
    : image_(image), forms_(mode), slots_(kSlots) {}

void CodeReader::set_epoch(Epoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::fill(slots_.begin(), slots_.end(), Instruction{});
  pages_.fill({});
}

std::optional<Instruction> CodeReader::read_into_slot(Address address) {
  std::optional<Instruction> insn = read(address);
  if (insn) slots_[slot_of(address)] = *insn;
  return insn;
}

std::optional<Instruction> CodeReader::read(Address address) {
  constexpr std::uint64_t kPage_bytes = 1u << kPageBits;
  Page& page = pages_[address.value >> kPageBits & (kPages - 1)];
  Address begin{address.value & ~(kPage_bytes - 1)};
  if (page.bytes.empty() || page.begin != begin)
    page = {begin, image_.at(begin, kPage_bytes + kMaxInstructionSize_bytes, epoch_)};
  std::size_t offset = address - begin;
  if (offset + kMaxInstructionSize_bytes <= page.bytes.size())
    return forms_.decode(page.bytes.subspan(offset, kMaxInstructionSize_bytes), address);
  // Where sections begin and end.
  std::uint8_t bytes[kMaxInstructionSize_bytes];
  std::size_t size = image_.read(address, bytes, epoch_);
  return forms_.decode({bytes, size}, address);
}

Bytes CodeReader::bytes_of(const Instruction& instruction) const {
  Bytes bytes(instruction.size_bytes);
  bytes.resize(image_.read(instruction.address, bytes, epoch_));
  return bytes;
}

}  // namespace tailtrace
