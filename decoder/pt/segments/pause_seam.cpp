#include "decoder/pt/segments/pause_seam.h"

#include <algorithm>
#include <utility>

#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace::pt {
namespace {

// Further back no PSB is looked for.
constexpr std::size_t kMaxBlock_bytes = std::size_t{1} << 20;

std::optional<std::size_t> psb_before(ByteSpan trace, std::size_t psb) {
  const std::size_t begin = psb - std::min(psb, kMaxBlock_bytes);
  for (std::size_t at = psb; at-- > begin;)
    if (trace[at] == 0x02 && find_psb(trace.first(std::min(psb, at + kPsbSize_bytes)), at) == at)
      return at;
  return std::nullopt;
}

// Where the flow stood when it was paused right before the PSB.
std::optional<Address> paused_before(ByteSpan trace, std::size_t psb) {
  std::optional<std::size_t> from = psb_before(trace, psb);
  if (!from) return std::nullopt;
  PacketReader packets(trace.first(psb));
  packets.seek(*from);
  std::uint64_t last = 0;
  std::optional<Address> bound, paused;  // by a FUP; by the TIP.PGD behind it
  for (Packet packet; packets.next(packet) == ReadStatus::kOk;) {
    if (is_neutral(packet)) continue;
    const std::optional<Address> fup = std::exchange(bound, std::nullopt);
    paused.reset();
    if (packet.kind == PacketKind::kPsb) last = 0;
    bool is_ip = packet.kind == PacketKind::kFup || packet.kind == PacketKind::kTip ||
                 packet.kind == PacketKind::kTipPge || packet.kind == PacketKind::kTipPgd;
    if (is_ip && packet.bits != kIpSuppressed) last = apply_ip(last, packet);
    if (packet.kind == PacketKind::kFup && packet.bits != kIpSuppressed) bound = Address{last};
    if (packet.kind == PacketKind::kTipPgd) paused = fup;
  }
  return packets.offset() == psb ? paused : std::nullopt;
}

// Where it goes on behind the PSB, if nothing else happens there.
std::optional<Address> resumed_behind(ByteSpan trace, std::size_t psb) {
  PacketReader packets(trace);
  packets.seek(psb + kPsbSize_bytes);
  bool ended = false;
  for (Packet packet; packets.next(packet) == ReadStatus::kOk;) {
    if (is_neutral(packet)) continue;
    if (packet.kind == PacketKind::kPsbEnd && !ended) {
      ended = true;
    } else if (packet.kind == PacketKind::kTipPge && ended && packet.bits != kIpSuppressed) {
      return Address{apply_ip(0, packet)};
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_neutral(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::kPad:
    case PacketKind::kTsc:
    case PacketKind::kTma:
    case PacketKind::kMtc:
    case PacketKind::kCyc:
    case PacketKind::kCbr:
    case PacketKind::kModeExec:
      return true;
    default:
      return false;
  }
}

std::optional<Address> pause_at(ByteSpan trace, std::size_t psb) {
  std::optional<Address> resumed = resumed_behind(trace, psb);
  if (!resumed || paused_before(trace, psb) != resumed) return std::nullopt;
  return resumed;
}

}  // namespace tailtrace::pt
