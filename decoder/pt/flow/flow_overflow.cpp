// What an OVF packet means: where the flow goes on behind it, and the errata that make it hard to
// tell (SKD010, APL11, APL12; Intel's specification updates).
#include "decoder/pt/flow/flow_items.h"

namespace tailtrace::pt {
namespace {

bool is_timing(PacketKind kind) {
  switch (kind) {
    case PacketKind::kTsc:
    case PacketKind::kTma:
    case PacketKind::kMtc:
    case PacketKind::kCyc:
    case PacketKind::kCbr:
      return true;
    default:
      return false;
  }
}

bool is_power_state(PacketKind kind) {
  return kind == PacketKind::kMwait || kind == PacketKind::kPwre || kind == PacketKind::kPwrx;
}

bool needs_tracing(PacketKind kind) {
  switch (kind) {
    case PacketKind::kTnt:
    case PacketKind::kTip:
    case PacketKind::kTipPgd:
    case PacketKind::kPsbEnd:
      return true;
    default:
      return false;
  }
}

bool belongs_to_psb(PacketKind kind) {
  switch (kind) {
    case PacketKind::kPad:
    case PacketKind::kModeExec:
    case PacketKind::kModeTsx:
    case PacketKind::kPip:
    case PacketKind::kVmcs:
    case PacketKind::kMnt:
      return true;
    default:
      return is_timing(kind);
  }
}

// The FUP of the PSB+ that the reader stands in; tracing is enabled there if it has one.
// Not readable: no value. No FUP: a packet of another kind.
std::optional<Packet> find_header_fup(PacketReader& packets) {
  for (Packet packet; packets.next(packet) == ReadStatus::kOk;)
    if (!belongs_to_psb(packet.kind)) return packet;
  return std::nullopt;
}

}  // namespace

// Whether an MWAIT's EXSTOP is lost: an OVF comes before all but power states and timing. One that
// comes later take_ovf() sees.
bool ItemReader::ovf_comes_first() const {
  constexpr int kMostPackets = 64;  // there may be any number of MWAITs, and each asks
  PacketReader ahead = packets_;
  Packet packet;
  for (int i = 0; i < kMostPackets && ahead.next(packet) == ReadStatus::kOk; ++i) {
    if (packet.kind == PacketKind::kOvf) return true;
    if (!is_power_state(packet.kind) && !is_timing(packet.kind) && packet.kind != PacketKind::kPad)
      return false;
  }
  return false;
}

// OVF binds to a FUP where tracing is enabled when it resolves, and to a TIP.PGE or nothing where
// it is not (SDM, "OVF packet"). Only timing packets come between OVF and that FUP.
bool ItemReader::take_ovf() {
  // An MWAIT was executed, though its EXSTOP is lost.
  if (at_fup_.find(EventKind::kExstop) == nullptr && !emit_mwaits()) return false;
  last_ip_ = 0;
  have_ip_ = false;
  enabled_ = false;
  exec_bits_ = exec_bits_before_ = kUnknownBits;
  data_ = 0;
  at_fup_.clear();
  at_tip_.clear();
  clock_.overflow();

  std::size_t fup_end = 0;
  AfterOvf after = look_behind_ovf(fup_end);
  std::optional<Resumption> resumption;
  const Errata& errata = config_.errata;
  if (after != AfterOvf::kFup) {
    if (errata.skd010) resumption = find_skd010();
    if (!resumption && errata.apl11 && after == AfterOvf::kOutOfPlace) resumption = find_apl11();
    if (!resumption && after == AfterOvf::kDisabled) resumption = find_in_psb();
  } else if (errata.apl12) {
    resumption = find_apl12(fup_end);
  }
  if (resumption) return resume(*resumption);

  Event event = make(EventKind::kOverflow);
  if (after == AfterOvf::kFup) {
    enabled_ = true;
    return bind_to_fup(event);
  }
  event.flags |= kEventIpSuppressed;
  return emit(event);
}

ItemReader::AfterOvf ItemReader::look_behind_ovf(std::size_t& fup_end) const {
  PacketReader ahead = packets_;
  for (Packet packet; ahead.next(packet) == ReadStatus::kOk;) {
    if (packet.kind == PacketKind::kFup) {
      fup_end = ahead.offset();
      return AfterOvf::kFup;
    }
    if (needs_tracing(packet.kind)) return AfterOvf::kOutOfPlace;
    if (!is_timing(packet.kind) && packet.kind != PacketKind::kPad &&
        packet.kind != PacketKind::kMnt)
      return AfterOvf::kDisabled;
  }
  return AfterOvf::kDisabled;
}

// The FUP of a PSB+ that comes first says where the flow goes on, too. But with TIP.PGE right
// behind it, it is that of BDM70, whether or not the processor is known to have that.
std::optional<ItemReader::Resumption> ItemReader::find_in_psb() const {
  PacketReader ahead = packets_;
  Resumption here{0, clock_, {}};
  Packet packet;
  do {
    here.offset = ahead.offset();
    if (ahead.next(packet) != ReadStatus::kOk) return std::nullopt;
    if (is_timing(packet.kind)) here.clock.take(packet, false);
  } while (is_timing(packet.kind) || packet.kind == PacketKind::kPad);
  if (packet.kind != PacketKind::kPsb) return std::nullopt;
  here.ip = find_header_fup(ahead);
  const bool says = here.ip && here.ip->kind == PacketKind::kFup && here.ip->bits != kIpSuppressed;
  if (!says || header_fup_is_bdm70(ahead)) return std::nullopt;
  return here;
}

// SKD010: the FUP may have been dropped. A later packet with an address tells that tracing was
// enabled and where to go on.
std::optional<ItemReader::Resumption> ItemReader::find_skd010() const {
  PacketReader ahead = packets_;
  Resumption here{0, clock_, {}};
  std::optional<Resumption> at_tsx;
  for (Packet packet;;) {
    here.offset = ahead.offset();
    if (ahead.next(packet) != ReadStatus::kOk) return std::nullopt;
    if (is_timing(packet.kind)) {
      here.clock.take(packet, false);
      continue;
    }
    switch (packet.kind) {
      case PacketKind::kTipPgd:
        here.offset = ahead.offset();
        return here;
      case PacketKind::kFup:
        // The FUP of a MODE.TSX, or the begin of an asynchronous branch.
        if (at_tsx) here = *at_tsx;
        here.ip = packet;
        return here;
      case PacketKind::kTip:
        here.offset = ahead.offset();
        here.ip = packet;
        return here;
      case PacketKind::kPsb: {
        std::optional<Packet> fup = find_header_fup(ahead);
        if (!fup || fup->kind != PacketKind::kFup) return std::nullopt;
        here.ip = fup;
        return here;
      }
      case PacketKind::kModeTsx:
        if (at_tsx) return std::nullopt;
        at_tsx = here;
        break;
      case PacketKind::kModeExec:
      case PacketKind::kPip:
      case PacketKind::kVmcs:
      case PacketKind::kPad:
      case PacketKind::kMnt:
      case PacketKind::kPwre:
      case PacketKind::kPwrx:
      case PacketKind::kEvd:
        break;
      case PacketKind::kExstop:
      case PacketKind::kPtw:
      case PacketKind::kCfe:
      case PacketKind::kTrig:
        if (packet.has_ip) return std::nullopt;
        break;
      default:
        // TIP.PGE, TraceStop, OVF: all is well. TNT: it hit, but nothing tells where.
        return std::nullopt;
    }
  }
}

// APL11: a TIP.PGD may follow that ended the tracing during which the overflow happened.
std::optional<ItemReader::Resumption> ItemReader::find_apl11() const {
  PacketReader ahead = packets_;
  Resumption here{0, clock_, {}};
  for (Packet packet; ahead.next(packet) == ReadStatus::kOk;) {
    if (is_timing(packet.kind)) {
      here.clock.take(packet, false);
      continue;
    }
    if (packet.kind == PacketKind::kPad || packet.kind == PacketKind::kMnt) continue;
    if (packet.kind != PacketKind::kTipPgd) return std::nullopt;
    here.offset = ahead.offset();
    return here;
  }
  return std::nullopt;
}

// APL12: a FUP may follow although tracing is disabled. What comes later tells.
std::optional<ItemReader::Resumption> ItemReader::find_apl12(std::size_t fup_end) const {
  PacketReader ahead = packets_;
  Resumption here{fup_end, clock_, {}};
  for (Packet packet; ahead.next(packet) == ReadStatus::kOk;) {
    if (ahead.offset() < fup_end && is_timing(packet.kind)) here.clock.take(packet, false);
    if (ahead.offset() <= fup_end) continue;
    switch (packet.kind) {
      case PacketKind::kStop:
      case PacketKind::kTipPge:
        return here;
      case PacketKind::kPsb: {
        // One without a FUP; one that another OVF cuts says nothing.
        const std::optional<Packet> behind = find_header_fup(ahead);
        if (!behind || behind->kind != PacketKind::kPsbEnd) return std::nullopt;
        return here;
      }
      case PacketKind::kTnt:
      case PacketKind::kTip:
      case PacketKind::kTipPgd:
      case PacketKind::kPsbEnd:
      case PacketKind::kOvf:
        return std::nullopt;
      default:
        break;
    }
  }
  return std::nullopt;
}

bool ItemReader::resume(const Resumption& resumption) {
  packets_.seek(resumption.offset);
  clock_ = resumption.clock;
  Event event = make(EventKind::kOverflow);
  if (resumption.ip && resumption.ip->bits != kIpSuppressed) {
    last_ip_ = apply_ip(last_ip_, *resumption.ip);
    have_ip_ = enabled_ = true;
  }
  put_ip(event);
  return emit(event);
}

}  // namespace tailtrace::pt
