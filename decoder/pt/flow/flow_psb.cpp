// PSB+: what the processor says of its state at a synchronisation point (SDM, "PSB packet").
#include "decoder/pt/flow/flow_items.h"

namespace tailtrace::pt {

bool ItemReader::take_psb(std::size_t offset) {
  last_ip_ = 0;
  have_ip_ = false;
  data_ = 0;  // another reader may begin here
  in_psb_.clear();
  clock_.psb();
  if (!enabled_) clock_.pause();
  for (;;) {
    packet_offset_ = packets_.offset();
    Packet packet;
    ReadStatus status = packets_.next(packet);
    if (status == ReadStatus::kEnd || status == ReadStatus::kCut) return end(false);
    if (status != ReadStatus::kOk)
      return fail_at(
          status == ReadStatus::kBadPacket ? DecodeError::kBadPacket : DecodeError::kBadOpcode,
          offset);
    if (packet.kind == PacketKind::kPsbEnd || packet.kind == PacketKind::kOvf) {
      std::size_t end = packet_offset_;
      packet_offset_ = offset;
      if (offset == boundary_) return stop_at_boundary();
      end_header();
      packet_offset_ = end;
      cut_ = packet.kind == PacketKind::kOvf;
      return !cut_ || take_ovf();
    }
    if (!take_header_packet(packet)) return fail_at(DecodeError::kBadContext, offset);
  }
}

// False: the packet cannot be in PSB+.
bool ItemReader::take_header_packet(const Packet& packet) {
  Pending pending;
  Event& event = pending.event;
  event = make(EventKind::kMnt);
  event.payload = packet.payload;
  event.flags |= kEventStatusUpdate;
  switch (packet.kind) {
    case PacketKind::kPad:
      return true;
    case PacketKind::kTsc:
      fresh_time_ = true;
      [[fallthrough]];
    case PacketKind::kTma:
    case PacketKind::kMtc:
    case PacketKind::kCyc:
      if (skip_cut_cyc(packet)) return true;
      clock_.take(packet, true);
      return true;
    case PacketKind::kCbr:
      clock_.take(packet, true);
      event.kind = EventKind::kCbr;
      return in_psb_.push(pending);
    case PacketKind::kFup:
      if (packet.bits == kIpSuppressed) {
        have_ip_ = false;
        return true;
      }
      if (config_.errata.bdm70 && !enabled_ && header_fup_is_bdm70(packets_)) return true;
      last_ip_ = apply_ip(last_ip_, packet);
      have_ip_ = enabled_ = true;
      return true;
    case PacketKind::kMnt:
      // Maintenance packets come anywhere: it repeats nothing.
      event.flags &= static_cast<std::uint16_t>(~kEventStatusUpdate);
      return in_psb_.push(pending);
    case PacketKind::kModeExec: {
      std::optional<CodeMode> mode = mode_of(packet.payload);
      if (!mode) return false;
      exec_bits_ = packet.payload;
      event.kind = EventKind::kExecMode;
      event.mode = *mode;
      event.payload = 0;
      return in_psb_.push(pending);
    }
    case PacketKind::kModeTsx:
      event.kind = EventKind::kTransaction;
      if ((packet.payload & 1) != 0) event.flags |= kEventSpeculative;
      if ((packet.payload & 2) != 0) event.flags |= kEventAborted;
      event.payload = 0;
      return in_psb_.push(pending);
    case PacketKind::kPip:
      event.kind = EventKind::kAsyncPaging;
      if (packet.bits != 0) event.flags |= kEventNonRoot;
      return in_psb_.push(pending);
    case PacketKind::kVmcs:
      event.kind = EventKind::kAsyncVmcs;
      return in_psb_.push(pending);
    default:
      return false;
  }
}

// BDM70: a PSB+ before TIP.PGE may say that tracing is enabled while it is not.
bool ItemReader::header_fup_is_bdm70(PacketReader ahead) {
  for (Packet packet; ahead.next(packet) == ReadStatus::kOk;) {
    switch (packet.kind) {
      case PacketKind::kTipPge:
        return true;
      case PacketKind::kPad:
      case PacketKind::kTsc:
      case PacketKind::kCbr:
      case PacketKind::kPsbEnd:
      case PacketKind::kPip:
      case PacketKind::kModeExec:
      case PacketKind::kModeTsx:
      case PacketKind::kVmcs:
      case PacketKind::kTma:
      case PacketKind::kMtc:
      case PacketKind::kCyc:
      case PacketKind::kMnt:
        break;
      default:
        return false;
    }
  }
  return false;
}

// What PSB+ said holds at its FUP's address; without one, at once.
void ItemReader::end_header() {
  start_ip_.reset();
  if (enabled_ && have_ip_) start_ip_ = Address{last_ip_};
  for (Pending& pending : in_psb_) {
    Event& event = pending.event;
    if (event.kind != EventKind::kMnt) put_ip(event);
    Event stamped = make(event.kind);
    event.time = stamped.time;
    event.flags |= stamped.flags;
    emit(event);
  }
  in_psb_.clear();
}

}  // namespace tailtrace::pt
