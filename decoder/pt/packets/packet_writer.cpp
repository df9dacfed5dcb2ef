#include "decoder/pt/packets/packet_writer.h"

#include <algorithm>
#include <utility>

namespace tailtrace::pt {
namespace {

std::uint64_t sign_extend_48(std::uint64_t ip) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(ip << 16) >> 16);
}

unsigned size_of(IpBytes bytes) {
  switch (bytes) {
    case IpBytes::kSuppressed:
      return 0;
    case IpBytes::kUpdate16:
      return 2;
    case IpBytes::kUpdate32:
      return 4;
    case IpBytes::kSignExtended48:
    case IpBytes::kUpdate48:
      return 6;
    case IpBytes::kFull:
      return 8;
  }
  return 0;
}

// What a decoder makes of the packet: the last address with its low bytes replaced.
Address updated(Address last, IpBytes bytes, Address ip) {
  unsigned bits = size_of(bytes) * 8;
  if (bits == 64) return ip;
  if (bytes == IpBytes::kSignExtended48) return {sign_extend_48(ip.value)};
  std::uint64_t mask = (1ull << bits) - 1;
  return {(last.value & ~mask) | (ip.value & mask)};
}

}  // namespace

Bytes PacketWriter::take() {
  flush();
  return std::exchange(out_, {});
}

void PacketWriter::little_endian(std::uint64_t value, unsigned count) {
  for (unsigned i = 0; i < count; ++i) byte(static_cast<unsigned>(value >> (8 * i)) & 0xff);
}

void PacketWriter::extended(unsigned opcode) {
  byte(0x02);
  byte(opcode);
}

void PacketWriter::not_taken(std::uint32_t count) {
  while (count != 0) {
    unsigned now = std::min<std::uint32_t>(count, tnt_limit - tnt_count_);
    tnt_bits_ <<= now;
    tnt_count_ += now;
    count -= now;
    if (tnt_count_ >= tnt_limit) flush();
  }
}

// The outcomes stand below a stop bit, the oldest one next to it; short packets have the header
// bit below them.
void PacketWriter::write_tnt() {
  if (tnt_count_ == 0) return;
  std::uint64_t payload = (1ull << tnt_count_) | tnt_bits_;
  if (tnt_count_ <= kShortTnt) {
    byte(static_cast<unsigned>(payload << 1));
  } else {
    extended(0xa3);
    little_endian(payload, 6);
  }
  tnt_count_ = 0;
  tnt_bits_ = 0;
}

void PacketWriter::flush() {
  write_tnt();
  if (deferred_.empty()) return;
  for (Address ip : std::exchange(deferred_, {})) ip_packet(IpPacket::kTip, ip);
}

void PacketWriter::tip(Address ip) {
  if (defer_tips && tnt_count_ != 0)
    deferred_.push_back(ip);
  else
    tip_now(ip);
}

IpBytes PacketWriter::best_compression(Address ip) const {
  if (last_ip_valid_ || compress_against_zero) {
    if (ip.value >> 16 == last_ip_.value >> 16) return IpBytes::kUpdate16;
    if (ip.value >> 32 == last_ip_.value >> 32) return IpBytes::kUpdate32;
    if (update_48 && ip.value >> 48 == last_ip_.value >> 48) return IpBytes::kUpdate48;
  }
  return sign_extend_48(ip.value) == ip.value ? IpBytes::kSignExtended48 : IpBytes::kFull;
}

void PacketWriter::ip_packet(IpPacket packet, Address ip) {
  flush();
  ip_packet(packet, best_compression(ip), ip);
}

void PacketWriter::ip_packet(IpPacket packet, IpBytes bytes, Address ip) {
  flush();
  byte(static_cast<unsigned>(packet) | (static_cast<unsigned>(bytes) << 5));
  if (bytes == IpBytes::kSuppressed) return;
  little_endian(ip.value, size_of(bytes));
  last_ip_ = updated(last_ip_, bytes, ip);
  last_ip_valid_ = true;
}

void PacketWriter::psb() {
  flush();
  for (int i = 0; i < 8; ++i) extended(0x82);
  last_ip_ = {};
  last_ip_valid_ = false;
}

void PacketWriter::psbend() {
  flush();
  extended(0x23);
}

void PacketWriter::ovf() {
  tnt_count_ = 0;
  tnt_bits_ = 0;
  deferred_.clear();
  extended(0xf3);
  last_ip_valid_ = false;
}

void PacketWriter::trace_stop() {
  flush();
  extended(0x83);
}

void PacketWriter::mode_exec(CodeMode mode, bool interrupt_flag) {
  flush();
  unsigned bits = mode == CodeMode::k64 ? 1 : mode == CodeMode::k32 ? 2 : 0;
  byte(0x99);
  byte(bits | (interrupt_flag ? 4u : 0u));
}

void PacketWriter::mode_tsx(bool in_transaction, bool aborted) {
  flush();
  byte(0x99);
  byte(0x20u | (in_transaction ? 1u : 0u) | (aborted ? 2u : 0u));
}

void PacketWriter::pip(std::uint64_t cr3, bool non_root) {
  flush();
  extended(0x43);
  little_endian(((cr3 >> 5) << 1) | (non_root ? 1u : 0u), 6);
}

void PacketWriter::vmcs(std::uint64_t base) {
  flush();
  extended(0xc8);
  little_endian(base >> 12, 5);
}

void PacketWriter::ptw(std::uint64_t payload, bool eight_bytes, bool fup_follows) {
  flush();
  extended(0x12u | (eight_bytes ? 0x20u : 0u) | (fup_follows ? 0x80u : 0u));
  little_endian(payload, eight_bytes ? 8 : 4);
}

void PacketWriter::exstop(bool fup_follows) {
  flush();
  extended(fup_follows ? 0xe2 : 0x62);
}

void PacketWriter::mwait(std::uint32_t hints, std::uint32_t extensions) {
  flush();
  extended(0xc2);
  little_endian(hints, 4);
  little_endian(extensions, 4);
}

void PacketWriter::pwre(std::uint8_t state, std::uint8_t sub_state, bool hardware) {
  flush();
  extended(0x22);
  byte(hardware ? 0x80 : 0x00);
  byte(((state & 0xfu) << 4) | (sub_state & 0xfu));
}

void PacketWriter::pwrx(std::uint8_t last, std::uint8_t deepest, std::uint8_t wake_reason) {
  flush();
  extended(0xa2);
  byte(((last & 0xfu) << 4) | (deepest & 0xfu));
  byte(wake_reason);
  little_endian(0, 3);
}

void PacketWriter::bbp(std::uint8_t type, bool four_bytes) {
  flush();
  extended(0x63);
  byte((type & 0x1fu) | (four_bytes ? 0x80u : 0u));
}

void PacketWriter::bip(std::uint8_t id, std::uint64_t payload, bool four_bytes) {
  flush();
  byte(static_cast<unsigned>(id << 3) | 4u);
  little_endian(payload, four_bytes ? 4 : 8);
}

void PacketWriter::bep(bool fup_follows) {
  flush();
  extended(fup_follows ? 0xb3 : 0x33);
}

void PacketWriter::cfe(std::uint8_t type, std::uint8_t vector, bool fup_follows) {
  flush();
  extended(0x13);
  byte((type & 0x1fu) | (fup_follows ? 0x80u : 0u));
  byte(vector);
}

void PacketWriter::evd(std::uint8_t type, std::uint64_t payload) {
  flush();
  extended(0x53);
  byte(type & 0x3fu);
  little_endian(payload, 8);
}

void PacketWriter::trig(std::uint8_t triggers, std::optional<std::uint16_t> count, bool several,
                        bool fup_follows) {
  flush();
  byte(0xd9);
  byte((several ? 0x20u : 0u) | (count ? 0x40u : 0u) | (fup_follows ? 0x80u : 0u));
  byte(triggers);
  if (count) little_endian(*count, 2);
}

void PacketWriter::tsc(std::uint64_t ticks) {
  byte(0x19);
  little_endian(ticks, 7);
}

void PacketWriter::tma(std::uint16_t ctc, std::uint16_t fast_counter) {
  extended(0x73);
  little_endian(ctc, 2);
  byte(0);
  little_endian(fast_counter & 0x1ffu, 2);
}

void PacketWriter::mtc(std::uint8_t ctc) {
  byte(0x59);
  byte(ctc);
}

// Five bits of the count in the first byte, seven in each further one; a bit says that one more
// byte follows.
void PacketWriter::cyc(std::uint64_t cycles) {
  bool more = cycles > 0x1f;
  byte(static_cast<unsigned>((cycles & 0x1f) << 3) | (more ? 4u : 0u) | 3u);
  cycles >>= 5;
  while (more) {
    more = cycles > 0x7f;
    byte(static_cast<unsigned>((cycles & 0x7f) << 1) | (more ? 1u : 0u));
    cycles >>= 7;
  }
}

void PacketWriter::cbr(std::uint8_t ratio) {
  extended(0x03);
  byte(ratio);
  byte(0);
}

void PacketWriter::mnt(std::uint64_t payload) {
  extended(0xc3);
  byte(0x88);
  little_endian(payload, 8);
}

}  // namespace tailtrace::pt
