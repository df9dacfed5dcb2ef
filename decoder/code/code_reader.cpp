#include "decoder/code/code_reader.h"

#include <algorithm>

namespace tailtrace {

CodeReader::CodeReader(const CodeImage& image, CodeMode mode)
    : image_(image), forms_(mode), slots_(kSlots) {}

void CodeReader::set_epoch(Epoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::fill(slots_.begin(), slots_.end(), Instruction{});
  newest_ = {};
  sections_.fill({});
}

[[gnu::noinline]] Decoded CodeReader::read_elsewhere(Address address) {
  Section& section = sections_[page_of(address)];
  if (!section.holds(address)) {
    const auto [begin, bytes] = image_.around(address, epoch_);
    section = {
        begin, bytes.data(),
        std::max(bytes.size(), kMaxInstructionSize_bytes - 1) - (kMaxInstructionSize_bytes - 1)};
  }
  if (section.holds(address)) {
    newest_ = section;
    return forms_.decode(section.bytes_at(address), address);
  }
  // Where sections begin and end.
  std::uint8_t bytes[kMaxInstructionSize_bytes];
  const std::size_t size = image_.read(address, bytes, epoch_);
  return forms_.decode({bytes, size}, address);
}

Bytes CodeReader::bytes_of(const Instruction& instruction) const {
  Bytes bytes(instruction.size_bytes);
  bytes.resize(image_.read(instruction.address, bytes, epoch_));
  return bytes;
}

}  // namespace tailtrace
