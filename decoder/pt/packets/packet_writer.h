// PacketWriter: writes Intel PT packets (SDM volume 3, chapter "Intel Processor Trace", section
// "Packet definitions").
//
// It knows the layouts, how outcomes are gathered into TNT packets, and how addresses are
// compressed against the last one; it knows nothing of programs. What is put into it comes out as
// a processor would send it, but for one freedom: it never checks that a packet may stand where it
// is put, so that tests can write wrong traces as well.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"
#include "decoder/code/instruction.h"

namespace tailtrace::pt {

// The packets that carry an address, by their opcode (bits 4:0 of the first byte).
enum class IpPacket : std::uint8_t { kPgd = 0x01, kTip = 0x0d, kPge = 0x11, kFup = 0x1d };

// How an address is compressed: the IPBytes field.
enum class IpBytes : std::uint8_t {
  kSuppressed = 0,
  kUpdate16 = 1,
  kUpdate32 = 2,
  kSignExtended48 = 3,
  kUpdate48 = 4,
  kFull = 6,
};

class PacketWriter {
 public:
  // How many outcomes a TNT packet takes before it is sent by itself.
  static constexpr unsigned kShortTnt = 6;
  static constexpr unsigned kLongTnt = 47;

  // Settings; change them at any time.
  unsigned tnt_limit = kShortTnt;      // 1 to kLongTnt; above kShortTnt long packets are used
  bool defer_tips = false;             // tip() waits until the TNT before it is sent
  bool update_48 = false;              // use IpBytes::kUpdate48 where it fits
  bool compress_against_zero = false;  // also the first address after PSB may be compressed

  const Bytes& bytes() const { return out_; }
  std::size_t size_bytes() const { return out_.size(); }
  Bytes take();

  // Outcomes. A packet goes out when tnt_limit is reached.
  void tnt(bool taken) {
    tnt_bits_ = (tnt_bits_ << 1) | (taken ? 1u : 0u);
    if (++tnt_count_ >= tnt_limit) flush();
  }
  // `count` branches that were not taken.
  void not_taken(std::uint32_t count);
  bool tnt_pending() const { return tnt_count_ != 0; }
  // Sends the outcomes and then the deferred TIPs.
  void flush();

  // Addresses, compressed as well as the settings allow. All but tip() flush first; so does tip()
  // unless it is deferred.
  void tip(Address ip);
  void tip_now(Address ip) { ip_packet(IpPacket::kTip, ip); }
  void tip_pge(Address ip) { ip_packet(IpPacket::kPge, ip); }
  void tip_pgd(Address ip) { ip_packet(IpPacket::kPgd, ip); }
  void fup(Address ip) { ip_packet(IpPacket::kFup, ip); }
  void ip_packet(IpPacket packet, Address ip);
  // The same with a compression of the caller's choice; the bytes it leaves out are not checked.
  void ip_packet(IpPacket packet, IpBytes bytes, Address ip);
  void tip_pgd_suppressed() { ip_packet(IpPacket::kPgd, IpBytes::kSuppressed, {}); }

  // These flush first.
  void psb();  // the last address is zero afterwards
  void psbend();
  void ovf();  // outcomes and deferred TIPs not yet sent are lost with it
  void trace_stop();
  void mode_exec(CodeMode mode, bool interrupt_flag = false);
  void mode_tsx(bool in_transaction, bool aborted);
  void pip(std::uint64_t cr3, bool non_root);
  void vmcs(std::uint64_t base);
  void ptw(std::uint64_t payload, bool eight_bytes, bool fup_follows);
  void exstop(bool fup_follows);
  void mwait(std::uint32_t hints, std::uint32_t extensions);
  void pwre(std::uint8_t state, std::uint8_t sub_state, bool hardware);
  void pwrx(std::uint8_t last, std::uint8_t deepest, std::uint8_t wake_reason);
  void bbp(std::uint8_t type, bool four_bytes);
  void bip(std::uint8_t id, std::uint64_t payload, bool four_bytes);
  void bep(bool fup_follows);
  void cfe(std::uint8_t type, std::uint8_t vector, bool fup_follows);
  void evd(std::uint8_t type, std::uint64_t payload);
  // `count`: instructions since the last packet with an address.
  void trig(std::uint8_t triggers, std::optional<std::uint16_t> count, bool several,
            bool fup_follows);

  // These leave the outcomes alone.
  void pad() { byte(0x00); }
  void tsc(std::uint64_t ticks);
  void tma(std::uint16_t ctc, std::uint16_t fast_counter);
  void mtc(std::uint8_t ctc);
  // As many as decoders take in one packet.
  static constexpr std::uint64_t kMaxCycles = (1ull << 61) - 1;
  void cyc(std::uint64_t cycles);  // kMaxCycles at most
  void cbr(std::uint8_t ratio);
  void mnt(std::uint64_t payload);

  // Bytes of the caller's own.
  void raw(ByteSpan bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  // The last address as a decoder knows it.
  Address last_ip() const { return last_ip_; }

 private:
  void byte(unsigned value) { out_.push_back(static_cast<std::uint8_t>(value)); }
  void little_endian(std::uint64_t value, unsigned count);
  void extended(unsigned opcode);  // 02 and the opcode
  void write_tnt();
  IpBytes best_compression(Address ip) const;

  Bytes out_;
  Address last_ip_;
  bool last_ip_valid_ = false;
  std::uint64_t tnt_bits_ = 0;  // the newest outcome is bit 0
  unsigned tnt_count_ = 0;
  std::vector<Address> deferred_;
};

}  // namespace tailtrace::pt
