#include "decoder/pt/packets/packet_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tailtrace::pt {
namespace {

// The third byte, and all but 9 bits of the last two.
constexpr std::uint64_t kTmaReserved = 0xfe00ff0000ull;
constexpr std::uint64_t kPsbWord = 0x8202820282028202ull;

// Of bytes that begin with eight times 02 82: whether they are a PSB. Nothing but a PSB begins with
// these two bytes, so where a piece of one follows, the first pairs are the end of a packet before
// or a PSB that was cut, and the PSB begins further on.
bool is_whole_psb(ByteSpan bytes) {
  const ByteSpan next = bytes.subspan(kPsbSize_bytes);
  std::size_t pairs = 0;
  while (pairs < kPsbSize_bytes && pairs + 1 < next.size() && next[pairs] == 0x02 &&
         next[pairs + 1] == 0x82)
    pairs += 2;
  return pairs == 0 || pairs == kPsbSize_bytes || pairs + 1 >= next.size();
}

// Little-endian, 1 to 8 bytes.
std::uint64_t load_le(const std::uint8_t* p, unsigned size_bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < size_bytes; ++i) value |= std::uint64_t{p[i]} << (8 * i);
  return value;
}

// A packet being read. Each function reads the kind of packet that it is named after; the comment
// shows its bytes.
struct Cursor {
  ByteSpan bytes;
  Packet& packet;

  const std::uint8_t* data() const { return bytes.data(); }

  ReadStatus take(PacketKind kind, std::size_t size_bytes) {
    if (bytes.size() < size_bytes) return ReadStatus::kCut;
    packet.kind = kind;
    packet.size_bytes = static_cast<std::uint8_t>(size_bytes);
    return ReadStatus::kOk;
  }

  // `size_bytes` in all, of which the last `payload_bytes` are the payload.
  ReadStatus take(PacketKind kind, std::size_t size_bytes, unsigned payload_bytes) {
    ReadStatus status = take(kind, size_bytes);
    if (status == ReadStatus::kOk)
      packet.payload = load_le(data() + size_bytes - payload_bytes, payload_bytes);
    return status;
  }

  // The payload's highest bit is the stop bit: the outcomes are below it, the oldest first.
  ReadStatus take_outcomes(std::uint64_t with_stop_bit) {
    if (with_stop_bit == 0) return ReadStatus::kBadPacket;
    packet.bits = static_cast<std::uint8_t>(std::bit_width(with_stop_bit) - 1);
    packet.payload = with_stop_bit & ~(1ull << packet.bits);
    return ReadStatus::kOk;
  }

  // 7..1 stop bit and outcomes, 0: 0
  ReadStatus short_tnt() {
    packet = short_tnt_packet(data()[0]);
    return ReadStatus::kOk;
  }

  // 02 a3, 6 bytes of stop bit and outcomes
  ReadStatus long_tnt() {
    ReadStatus status = take(PacketKind::kTnt, 8, 6);
    return status == ReadStatus::kOk ? take_outcomes(packet.payload) : status;
  }

  // IPBytes in bits 7..5, the rest tells the kind; 0, 2, 4, 6 or 8 bytes of IP
  ReadStatus ip(PacketKind kind) {
    packet.bits = data()[0] >> 5;
    const unsigned size = IpSize::of(data()[0]);
    if (size == IpSize::kNoSize) return ReadStatus::kBadPacket;
    return take(kind, 1 + size, size);
  }

  // 99, leaf in bits 7..5
  ReadStatus mode() {
    if (bytes.size() < 2) return ReadStatus::kCut;
    unsigned leaf = data()[1] >> 5;
    if (leaf > 1) return ReadStatus::kBadPacket;
    packet.payload = data()[1] & (leaf == 0 ? 7 : 3);
    return take(leaf == 0 ? PacketKind::kModeExec : PacketKind::kModeTsx, 2);
  }

  // 5 bits (7..3) and, while bit 2 (later bytes: bit 0) says so, 7 bits more
  ReadStatus cyc() {
    packet.payload = data()[0] >> 3;
    bool more = (data()[0] & 4) != 0;
    unsigned shift = 5;
    std::size_t size = 1;
    for (; more; ++size, shift += 7) {
      if (size >= bytes.size()) return ReadStatus::kCut;
      if (shift + 7 > 64) return ReadStatus::kBadPacket;
      more = (data()[size] & 1) != 0;
      packet.payload |= std::uint64_t{data()[size]} >> 1 << shift;
    }
    return take(PacketKind::kCyc, size);
  }

  // d9, IP ICNTV MULT in bits 7..5, TRBV, 2 bytes of ICNT if ICNTV
  ReadStatus trig() {
    if (bytes.size() < 2) return ReadStatus::kCut;
    unsigned flags = data()[1];
    bool counted = (flags & 0x40) != 0;
    packet.has_ip = (flags & 0x80) != 0;
    packet.bits = static_cast<std::uint8_t>((counted ? 1 : 0) | ((flags & 0x20) != 0 ? 2 : 0));
    return counted ? take(PacketKind::kTrig, 5, 3) : take(PacketKind::kTrig, 3, 1);
  }

  // (02 82) eight times
  ReadStatus psb() {
    std::size_t size = std::min(bytes.size(), kPsbSize_bytes);
    for (std::size_t i = 0; i < size; ++i)
      if (data()[i] != (i % 2 == 0 ? 0x02 : 0x82)) return ReadStatus::kBadPacket;
    if (size == kPsbSize_bytes && !is_whole_psb(bytes)) return ReadStatus::kBadPacket;
    return take(PacketKind::kPsb, kPsbSize_bytes);
  }

  // 02 43, 6 bytes: bit 0 NR, CR3 from bit 1 on without its low 5 bits
  ReadStatus pip() {
    ReadStatus status = take(PacketKind::kPip, 8, 6);
    packet.bits = packet.payload & 1;
    packet.payload = packet.payload >> 1 << 5;
    return status;
  }

  // 02 c8, 5 bytes: the address without its low 12 bits
  ReadStatus vmcs() {
    ReadStatus status = take(PacketKind::kVmcs, 7, 5);
    packet.payload <<= 12;
    return status;
  }

  // 02 73, 2 bytes of CTC, one reserved, 9 bits of fast counter
  ReadStatus tma() {
    ReadStatus status = take(PacketKind::kTma, 7, 5);
    std::uint64_t raw = packet.payload;
    if (status == ReadStatus::kOk && (raw & kTmaReserved) != 0) return ReadStatus::kBadPacket;
    packet.payload = (raw & 0xffff) | (raw >> 24 & 0x1ff) << 16;
    return status;
  }

  // 02 03, ratio, reserved
  ReadStatus cbr() {
    ReadStatus status = take(PacketKind::kCbr, 4, 2);
    packet.payload &= 0xff;
    return status;
  }

  // 02 and bits 4..0 12h, size in 6..5, IP in 7; 4 or 8 bytes
  ReadStatus ptw(std::uint8_t second) {
    unsigned code = second >> 5 & 3;
    if (code > 1) return ReadStatus::kBadPacket;
    packet.has_ip = (second & 0x80) != 0;
    packet.bits = code == 0 ? 4 : 8;
    return take(PacketKind::kPtw, 2u + packet.bits, packet.bits);
  }

  ReadStatus with_ip(PacketKind kind, std::uint8_t second) {
    packet.has_ip = (second & 0x80) != 0;
    return take(kind, 2);
  }

  // 02 22, HW in bit 7, C-state and sub C-state. (Intel's decoder library has HW in bit 3, which
  // the SDM reserves; both are taken.)
  ReadStatus pwre() {
    ReadStatus status = take(PacketKind::kPwre, 4, 2);
    std::uint64_t raw = packet.payload;
    packet.bits = (raw & 0x88) != 0 ? 1 : 0;
    packet.payload = (raw >> 12 & 15) | (raw >> 8 & 15) << 8;
    return status;
  }

  // 02 a2, last (7..4) and deepest (3..0) core C-state, wake reason, 3 reserved
  ReadStatus pwrx() {
    ReadStatus status = take(PacketKind::kPwrx, 7, 5);
    std::uint64_t raw = packet.payload;
    packet.bits = raw >> 8 & 15;
    packet.payload = (raw >> 4 & 15) | (raw & 15) << 8;
    return status;
  }

  // 02 c3 88, 8 bytes
  ReadStatus mnt() {
    if (bytes.size() < 3) return ReadStatus::kCut;
    if (data()[2] != 0x88) return ReadStatus::kBadOpcode;
    return take(PacketKind::kMnt, 11, 8);
  }

  // 02 63, SZ in bit 7 (1: items of 4 bytes), type in 4..0
  ReadStatus bbp() {
    ReadStatus status = take(PacketKind::kBbp, 3, 1);
    packet.bits = packet.payload & 0x1f;
    packet.payload = (packet.payload & 0x80) != 0 ? 4 : 8;
    return status;
  }

  // identifier in bits 7..3, 100b; 4 or 8 bytes
  ReadStatus bip(unsigned item_size_bytes) {
    packet.bits = data()[0] >> 3;
    return take(PacketKind::kBip, 1 + item_size_bytes, item_size_bytes);
  }

  // 02 13, IP in bit 7, type in 4..0, vector
  ReadStatus cfe() {
    ReadStatus status = take(PacketKind::kCfe, 4, 2);
    packet.has_ip = (packet.payload & 0x80) != 0;
    packet.bits = packet.payload & 0x1f;
    packet.payload >>= 8;
    return status;
  }

  // 02 53, type in 5..0, 8 bytes
  ReadStatus evd() {
    ReadStatus status = take(PacketKind::kEvd, 11, 8);
    if (status == ReadStatus::kOk) packet.bits = data()[2] & 0x3f;
    return status;
  }

  ReadStatus extended() {
    if (bytes.size() < 2) return ReadStatus::kCut;
    std::uint8_t second = data()[1];
    switch (second) {
      case 0x82:
        return psb();
      case 0x23:
        return take(PacketKind::kPsbEnd, 2);
      case 0xa3:
        return long_tnt();
      case 0x43:
        return pip();
      case 0xc8:
        return vmcs();
      case 0x73:
        return tma();
      case 0x03:
        return cbr();
      case 0xf3:
        return take(PacketKind::kOvf, 2);
      case 0x83:
        return take(PacketKind::kStop, 2);
      case 0x62:
      case 0xe2:
        return with_ip(PacketKind::kExstop, second);
      case 0x33:
      case 0xb3:
        return with_ip(PacketKind::kBep, second);
      case 0xc2:
        return take(PacketKind::kMwait, 10, 8);
      case 0x22:
        return pwre();
      case 0xa2:
        return pwrx();
      case 0xc3:
        return mnt();
      case 0x63:
        return bbp();
      case 0x13:
        return cfe();
      case 0x53:
        return evd();
      default:
        return (second & 0x1f) == 0x12 ? ptw(second) : ReadStatus::kBadOpcode;
    }
  }

  ReadStatus any(unsigned block_item_size_bytes) {
    std::uint8_t first = data()[0];
    if (first == 0x00) return take(PacketKind::kPad, 1);
    if (first == 0x02) return extended();
    if (block_item_size_bytes != 0 && (first & 7) == 4) return bip(block_item_size_bytes);
    if ((first & 1) == 0) return short_tnt();
    if ((first & 3) == 3) return cyc();
    switch (first & 0x1f) {
      case 0x0d:
        return ip(PacketKind::kTip);
      case 0x11:
        return ip(PacketKind::kTipPge);
      case 0x01:
        return ip(PacketKind::kTipPgd);
      case 0x1d:
        return ip(PacketKind::kFup);
      default:
        break;
    }
    switch (first) {
      case 0x99:
        return mode();
      case 0x19:
        return take(PacketKind::kTsc, 8, 7);
      case 0x59:
        return take(PacketKind::kMtc, 2, 1);
      case 0xd9:
        return trig();
      default:
        return ReadStatus::kBadOpcode;
    }
  }
};

}  // namespace

ReadStatus read_packet(ByteSpan bytes, std::uint8_t block_item_size_bytes, Packet& packet) {
  packet = Packet{};
  return Cursor{bytes, packet}.any(block_item_size_bytes);
}

ReadStatus PacketReader::next(Packet& packet) {
  if (offset_ >= bytes_.size()) return ReadStatus::kEnd;
  ReadStatus status = read_packet(bytes_.subspan(offset_), block_item_size_bytes_, packet);
  if (status == ReadStatus::kBadPacket && skz84_ && packet.kind == PacketKind::kTma) {
    constexpr std::uint8_t kCorruptTmaSize_bytes = 8;
    if (bytes_.size() - offset_ < kCorruptTmaSize_bytes) return ReadStatus::kCut;
    packet = {PacketKind::kPad, kCorruptTmaSize_bytes, 0, false, 0};
    status = ReadStatus::kOk;
  }
  if (status != ReadStatus::kOk) return status;
  offset_ += packet.size_bytes;
  switch (packet.kind) {
    case PacketKind::kBbp:
      block_item_size_bytes_ = static_cast<std::uint8_t>(packet.payload);
      break;
    case PacketKind::kBep:
    case PacketKind::kOvf:
    case PacketKind::kPsb:
      block_item_size_bytes_ = 0;
      break;
    default:
      break;
  }
  return status;
}

bool is_cut_by_ovf(const Packet& cyc, ByteSpan bytes, std::size_t behind) {
  return cyc.kind == PacketKind::kCyc && cyc.size_bytes == 2 && (cyc.payload & ~0x1full) == 0x20 &&
         behind < bytes.size() && bytes[behind] == 0xf3;
}

std::optional<std::size_t> find_psb(ByteSpan bytes, std::size_t offset) {
  // A PSB is 16 bytes that repeat, so any 8 aligned bytes inside it look like one of two words.
  const std::uint8_t* base = bytes.data();
  for (std::size_t at = offset; at + kPsbSize_bytes <= bytes.size();) {
    std::uint64_t last;
    std::memcpy(&last, base + at + 8, sizeof last);
    if (last == kPsbWord) {
      std::uint64_t first;
      std::memcpy(&first, base + at, sizeof first);
      if (first == kPsbWord && is_whole_psb(bytes.subspan(at))) return at;
      ++at;
      continue;
    }
    // No PSB ends its second half here. Its pattern has period 2: a window of eight bytes that does
    // not hold the pattern in either phase lies in no PSB that begins before its last byte.
    at += last == (kPsbWord << 8 | kPsbWord >> 56) ? 1 : 8;
  }
  return std::nullopt;
}

std::string_view packet_name(PacketKind kind) {
  static constexpr std::string_view kNames[kPacketKinds] = {
      "PAD",       "PSB",      "PSBEND",    "TNT",  "TIP",    "TIP.PGE", "TIP.PGD", "FUP",
      "MODE.Exec", "MODE.TSX", "PIP",       "VMCS", "TSC",    "TMA",     "MTC",     "CYC",
      "CBR",       "OVF",      "TraceStop", "PTW",  "EXSTOP", "MWAIT",   "PWRE",    "PWRX",
      "MNT",       "BBP",      "BIP",       "BEP",  "CFE",    "EVD",     "TRIG"};
  auto index = static_cast<std::size_t>(kind);
  return index < kPacketKinds ? kNames[index] : "unknown";
}

}  // namespace tailtrace::pt
