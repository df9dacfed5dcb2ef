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

bool CodeReader::read_elsewhere(Address address, Instruction& insn) {
  constexpr std::uint64_t kPage_bytes = 1u << kPageBits;
  const Address begin{address.value & ~(kPage_bytes - 1)};
  const ByteSpan known = image_.at(begin, kPage_bytes + kMaxInstructionSize_bytes, epoch_);
  Page& page = pages_[page_of(address)];
  page = {begin, known.data(),
          std::max(known.size(), kMaxInstructionSize_bytes - 1) - (kMaxInstructionSize_bytes - 1)};
  if (page.holds(address)) return forms_.decode(page.bytes_at(address), address, insn);
  // Where sections begin and end.
  std::uint8_t bytes[kMaxInstructionSize_bytes];
  const std::size_t size = image_.read(address, bytes, epoch_);
  return forms_.decode({bytes, size}, address, insn);
}

Bytes CodeReader::bytes_of(const Instruction& instruction) const {
  Bytes bytes(instruction.size_bytes);
  bytes.resize(image_.read(instruction.address, bytes, epoch_));
  return bytes;
}

}  // namespace tailtrace
