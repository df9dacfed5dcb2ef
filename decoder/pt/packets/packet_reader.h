// Reads Intel PT packets out of a buffer, one after the other, and finds PSBs.
//
// The reader is strict: what the SDM does not define is an error, and it stays where it is until
// it is moved. It knows of one context only, the blocks of BBP, in which BIP packets have headers
// that are TNT packets elsewhere.
//
// Threading: one thread at a time; the bytes must outlive the reader.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/pt/packets/packet.h"

namespace tailtrace::pt {

enum class ReadStatus : std::uint8_t {
  kOk,
  kEnd,        // no byte is left
  kCut,        // the bytes end inside the packet
  kBadOpcode,  // no packet begins like this
  kBadPacket,  // the payload is impossible
};

// The packet that `bytes` begins with. `block_item_size_bytes` is 4 or 8 inside a block, else 0.
// REQUIRES: `bytes` is not empty.
ReadStatus read_packet(ByteSpan bytes, std::uint8_t block_item_size_bytes, Packet& packet);

// A TNT of one byte, which is even and above 2.
inline Packet short_tnt_packet(std::uint8_t head) {
  const auto bits = static_cast<std::uint8_t>(std::bit_width(head) - 2);
  return {PacketKind::kTnt, 1, bits, false, head >> 1 & ((1u << bits) - 1)};
}

// How many bytes of address an IP packet has, by the IPBytes in its first byte; kNoSize: there is
// no such packet.
struct IpSize {
  static constexpr std::uint8_t kNoSize = 0xff;
  static constexpr std::uint8_t kOf[8] = {0, 2, 4, 6, 6, kNoSize, 8, kNoSize};
  static std::uint8_t of(std::uint8_t head) { return kOf[head >> 5]; }
};

class PacketReader {
 public:
  PacketReader() = default;
  // `skz84`: a corrupt TMA is followed by a byte that is no packet; both are read as padding.
  explicit PacketReader(ByteSpan bytes, bool skz84 = false) : bytes_(bytes), skz84_(skz84) {}

  std::size_t offset() const { return offset_; }
  std::size_t size_bytes() const { return bytes_.size(); }
  ByteSpan bytes() const { return bytes_; }

  // Moves there; forgets any block.
  void seek(std::size_t offset) {
    offset_ = offset;
    block_item_size_bytes_ = 0;
  }

  bool in_block() const { return block_item_size_bytes_ != 0; }

  // Reads a packet and moves behind it. Stays in place unless kOk.
  ReadStatus next(Packet& packet);

  // The same for what most packets are, sooner: a TNT of one byte or a TIP. False: it may be
  // anything else, and nothing was read.
  bool next_branch(Packet& packet) {
    constexpr std::size_t kLongest_bytes = 9;
    if (in_block() || offset_ + kLongest_bytes > bytes_.size()) return false;
    const std::uint8_t* const at = bytes_.data() + offset_;
    const std::uint8_t head = *at;
    if ((head & 1) == 0 && head > 2) {
      packet = short_tnt_packet(head);
    } else {
      const std::uint8_t size = IpSize::of(head);
      if ((head & 0x1f) != kTipHead || size == IpSize::kNoSize) return false;
      std::uint64_t raw;
      std::memcpy(&raw, at + 1, sizeof raw);
      if (size < sizeof raw) raw &= (1ull << 8 * size) - 1;
      packet = {PacketKind::kTip, static_cast<std::uint8_t>(1 + size),
                static_cast<std::uint8_t>(head >> 5), false, raw};
    }
    offset_ += packet.size_bytes;
    return true;
  }

 private:
  static constexpr std::uint8_t kTipHead = 0x0d;  // in the low five bits

  ByteSpan bytes_;
  std::size_t offset_ = 0;
  std::uint8_t block_item_size_bytes_ = 0;
  bool skz84_ = false;
};

// SKD007: an OVF may come after the first byte of a CYC, in place of its rest. Whether that
// happened to the one that ends at `behind`: CYCs come back to back only when the counter wraps,
// with a full payload. The OVF begins behind the first byte.
bool is_cut_by_ovf(const Packet& cyc, ByteSpan bytes, std::size_t behind);

// The first PSB that begins at or behind `offset`. Of what looks like one and a piece of another,
// the last bytes are taken: a packet may end with bytes that look like those of a PSB.
std::optional<std::size_t> find_psb(ByteSpan bytes, std::size_t offset);

}  // namespace tailtrace::pt
