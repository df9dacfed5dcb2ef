#include "decoder/pt/flow/flow_items.h"

#include <cstring>
#include <utility>

namespace tailtrace::pt {
namespace {

// There may be gigabytes of it.
std::size_t behind_padding(ByteSpan bytes, std::size_t offset) {
  for (std::uint64_t word; offset + sizeof word <= bytes.size(); offset += sizeof word) {
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    if (word != 0) break;
  }
  while (offset < bytes.size() && bytes[offset] == 0) ++offset;
  return offset;
}

}  // namespace

ItemReader::ItemReader(ByteSpan trace, const DecoderConfig& config)
    : config_(config),
      packets_(trace, config.errata.skz84),
      clock_(config.timing, config.errata.skl168) {}

void ItemReader::start(std::size_t psb_offset) {
  packets_.seek(psb_offset);
  clock_.reset();
  fresh_time_ = false;
  enabled_ = false;
  exec_bits_ = kUnknownBits;
  start_ip_.reset();
  cut_ = false;
  at_fup_.clear();
  at_tip_.clear();
  out_begin_ = out_end_ = 0;
  if (skip_to_last_psb()) read_and_take();
}

// Of PSBs with nothing between them the last one counts. False: the boundary is among those behind
// the first, so that another reader begins there.
bool ItemReader::skip_to_last_psb() {
  PacketReader ahead = packets_;
  Packet packet;
  ahead.next(packet);
  for (;;) {
    packet_offset_ = ahead.offset();
    if (ahead.next(packet) != ReadStatus::kOk || packet.kind != PacketKind::kPsb) return true;
    if (packet_offset_ == boundary_) return stop_at_boundary();
    packets_.seek(packet_offset_);
  }
}

void ItemReader::fetch() {
  out_begin_ = out_end_ = 0;
  if (take_branch()) return;
  while (!has_item() && read_and_take()) {
  }
}

// What most packets are, while nothing waits for a TIP: read_and_take() makes the same of them.
inline bool ItemReader::take_branch() {
  packet_offset_ = packets_.offset();
  Packet packet;
  if (!at_tip_.empty() || !packets_.next_branch(packet)) return false;
  if (packet.kind == PacketKind::kTnt) {
    add_outcomes(packet);
  } else {
    take_address(packet);
    add_target();
  }
  return true;
}

// False: an item ends the stream.
bool ItemReader::read_and_take() {
  packet_offset_ = packets_.offset();
  Packet packet;
  switch (packets_.next(packet)) {
    case ReadStatus::kOk:
      return take_packet(packet);
    case ReadStatus::kEnd:
      return end(false);
    case ReadStatus::kCut:
      // A buffer may end anywhere. What is cut off a branch's packet, the branch was still
      // executed.
      return end(is_branch_packet());
    case ReadStatus::kBadPacket:
      return fail(DecodeError::kBadPacket);
    case ReadStatus::kBadOpcode:
      return fail(DecodeError::kBadOpcode);
  }
  return fail(DecodeError::kBadOpcode);
}

bool ItemReader::take_packet(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::kPad:
      if (!packets_.in_block()) packets_.seek(behind_padding(packets_.bytes(), packets_.offset()));
      return true;
    case PacketKind::kTnt:
      add_outcomes(packet);
      return true;
    case PacketKind::kTip:
    case PacketKind::kTipPge:
    case PacketKind::kTipPgd:
    case PacketKind::kFup:
      return take_ip(packet);
    case PacketKind::kCyc:
      return take_cyc(packet);
    case PacketKind::kTsc:
      fresh_time_ = true;
      [[fallthrough]];
    case PacketKind::kTma:
    case PacketKind::kMtc:
      clock_.take(packet, false);
      return true;
    case PacketKind::kCbr:
      clock_.take(packet, false);
      return emit_standalone(EventKind::kCbr, packet.payload);
    case PacketKind::kPsb:
      return take_psb(packet_offset_);
    case PacketKind::kOvf:
      return take_ovf();
    default:
      return take_other(packet);
  }
}

bool ItemReader::take_other(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::kModeExec:
      return take_mode_exec(packet);
    case PacketKind::kModeTsx:
      return take_mode_tsx(packet);
    case PacketKind::kPip:
      return take_pip(packet);
    case PacketKind::kVmcs:
      return take_vmcs(packet);
    case PacketKind::kStop:
      return emit_standalone(EventKind::kStop);
    case PacketKind::kMnt:
      return emit_standalone(EventKind::kMnt, packet.payload);
    case PacketKind::kPwre:
      return emit_standalone(EventKind::kPwre, packet.payload,
                             packet.bits != 0 ? kEventHardware : 0);
    case PacketKind::kPwrx:
      return emit_standalone(EventKind::kPwrx, packet.payload,
                             ((packet.bits & 1) != 0 ? kEventInterrupt : 0) |
                                 ((packet.bits & 4) != 0 ? kEventStore : 0) |
                                 ((packet.bits & 8) != 0 ? kEventAutonomous : 0));
    case PacketKind::kExstop:
      return take_exstop(packet);
    case PacketKind::kMwait:
      return take_mwait(packet);
    case PacketKind::kPtw:
      return take_ptw(packet);
    case PacketKind::kCfe:
      return take_cfe(packet);
    case PacketKind::kEvd:
      return take_evd(packet);
    case PacketKind::kTrig:
      return take_trig(packet);
    case PacketKind::kBip:
      return emit_standalone(EventKind::kBlockItem, packet.payload, kEventIpSuppressed,
                             packet.bits);
    case PacketKind::kBep:
      // The FUP of a block says where it was made and nothing about the flow.
      return !packet.has_ip || bind_to_fup(make(EventKind::kBlockItem), true, true);
    case PacketKind::kBbp:
      return emit_standalone(EventKind::kBlock, packet.bits, kEventIpSuppressed,
                             static_cast<std::uint8_t>(packet.payload));
    default:
      return true;  // PSBEND outside PSB+ says nothing
  }
}

// --- IP packets ------------------------------------------------------------------------------

inline void ItemReader::take_address(const Packet& packet) {
  have_ip_ = packet.bits != kIpSuppressed;
  if (have_ip_) last_ip_ = apply_ip(last_ip_, packet);
}

bool ItemReader::take_ip(const Packet& packet) {
  take_address(packet);
  switch (packet.kind) {
    case PacketKind::kTip:
      return take_tip(packet);
    case PacketKind::kTipPge:
      return take_pge(packet);
    case PacketKind::kTipPgd:
      return take_pgd(packet);
    default:
      return take_fup(packet);
  }
}

// The branch comes first, then what holds at its target.
bool ItemReader::take_tip(const Packet&) {
  if (Pending* branch = at_tip_.find(EventKind::kAsyncBranch)) {
    Event event = branch->event;
    put_ip(event, true);
    if (!emit(event)) return false;
  } else {
    add_target();
  }
  for (Pending& pending : at_tip_) {
    if (pending.event.kind == EventKind::kAsyncBranch) continue;
    put_ip(pending.event);
    if (!emit_behind_branch(pending.event)) return false;
  }
  at_tip_.clear();
  return true;
}

bool ItemReader::take_pge(const Packet&) {
  if (!have_ip_) return fail(DecodeError::kBadPacket);
  Event event = make(EventKind::kEnabled);
  event.ip = {last_ip_};
  enabled_ = true;
  if (!emit(event)) return false;
  for (Pending& pending : at_tip_) {
    if (pending.event.kind != EventKind::kExecMode) return fail(DecodeError::kBadContext);
    put_ip(pending.event);
    if (!emit_behind_branch(pending.event)) return false;
  }
  at_tip_.clear();
  return true;
}

// What changes with the branch that leaves the traced code holds where nothing is traced.
bool ItemReader::take_pgd(const Packet&) {
  Event event = make(EventKind::kDisabled);
  if (Pending* branch = at_tip_.find(EventKind::kAsyncBranch)) {
    event = branch->event;
    event.kind = EventKind::kAsyncDisabled;
    put_ip(event, true);
  } else {
    put_ip(event);
  }
  enabled_ = false;
  if (!emit(event)) return false;
  for (Pending& pending : at_tip_) {
    if (pending.event.kind == EventKind::kAsyncBranch) continue;
    pending.event.flags |= kEventIpSuppressed;
    if (!emit_behind_branch(pending.event)) return false;
  }
  at_tip_.clear();
  return true;
}

bool ItemReader::take_fup(const Packet&) {
  bool consumed = false;
  for (Pending& pending : at_fup_) {
    consumed |= pending.consumes;
    if (pending.silent) continue;
    Event& event = pending.event;
    // An overflow without an address resolved while tracing was disabled.
    if (event.kind == EventKind::kOverflow) enabled_ = have_ip_;
    if (!event.has(kEventIpSuppressed)) put_ip(event);
    if (!emit(event)) return false;
  }
  at_fup_.clear();
  if (at_tip_.size == 1 && at_tip_.items[0].event.kind == EventKind::kExecMode) {
    consumed = true;
    if (!take_mode_at_fup()) return false;
  }
  if (consumed) return true;
  if (!have_ip_) return fail(DecodeError::kNoIp);
  Event event = make(EventKind::kAsyncBranch);
  event.ip = {last_ip_};
  return bind_to_tip(event);
}

// A branch's MODE.Exec comes behind its FUP. One that comes before a FUP was caused by an
// instruction like STI, for event tracing: it tells RFLAGS.IF and repeats the mode.
bool ItemReader::take_mode_at_fup() {
  Event event = at_tip_.items[0].event;
  at_tip_.clear();
  put_ip(event);
  if (((exec_bits_ ^ exec_bits_before_) & 3) != 0 && !emit(event)) return false;
  bool first = exec_bits_before_ == kUnknownBits;
  return first ? emit_interrupt_flag(event) : emit_changed_interrupt_flag(event);
}

// RFLAGS.IF as the last MODE.Exec has it, where `event` is.
bool ItemReader::emit_interrupt_flag(Event event) {
  event.kind = EventKind::kInterruptFlag;
  event.payload = exec_bits_ >> 2 & 1;
  return emit(event);
}

// Without event tracing the flag is always clear, so the first one says nothing.
bool ItemReader::emit_changed_interrupt_flag(const Event& event) {
  bool known = exec_bits_before_ != kUnknownBits;
  bool changed = known && ((exec_bits_ ^ exec_bits_before_) & 4) != 0;
  return !changed || emit_interrupt_flag(event);
}

// An event behind the branch it came with.
bool ItemReader::emit_behind_branch(const Event& event) {
  if (!emit(event)) return false;
  return event.kind != EventKind::kExecMode || emit_changed_interrupt_flag(event);
}

// --- Making items ----------------------------------------------------------------------------

Event ItemReader::make(EventKind kind) const {
  Event event;
  event.kind = kind;
  if (clock_.known()) {
    event.flags |= kEventHasTime;
    event.time = clock_.ticks();
  }
  return event;
}

// Its event is none of an item that is no event.
inline Item& ItemReader::add(ItemKind kind) {
  Item& item = out_[out_end_++];
  item.kind = kind;
  item.error = DecodeError::kNoSync;
  item.bits = 0;
  item.suppressed = item.cut = false;
  item.time_exact = std::exchange(fresh_time_, false);
  item.payload = 0;
  item.time = clock_.known_ticks();
  item.offset_bytes = packet_offset_;
  return item;
}

inline void ItemReader::add_outcomes(const Packet& packet) {
  Item& item = add(ItemKind::kTnt);
  item.bits = packet.bits;
  item.payload = packet.payload;
}

inline void ItemReader::add_target() {
  Item& item = add(ItemKind::kTip);
  item.payload = last_ip_;
  item.suppressed = !have_ip_;
}

bool ItemReader::emit(const Event& event) {
  if (out_end_ + 1 >= out_.size()) return fail(DecodeError::kTooMuch);
  Item& item = add(ItemKind::kEvent);
  item.event = event;
  if (item.time_exact && event.has(kEventHasTime) && event.time == clock_.ticks())
    item.event.flags |= kEventTimeExact;
  return true;
}

bool ItemReader::emit_standalone(EventKind kind, std::uint64_t payload, std::uint16_t flags,
                                 std::uint8_t size_bytes) {
  Event event = make(kind);
  event.payload = payload;
  event.flags |= flags;
  event.size_bytes = size_bytes;
  return emit(event);
}

bool ItemReader::bind_to_fup(const Event& event, bool consumes, bool silent) {
  return at_fup_.push({event, consumes, silent}) || fail(DecodeError::kTooMuch);
}

bool ItemReader::bind_to_tip(const Event& event) {
  return at_tip_.push({event, true, false}) || fail(DecodeError::kTooMuch);
}

// The address of the last IP packet, or that there was none.
bool ItemReader::put_ip(Event& event, bool to) const {
  if (!have_ip_)
    event.flags |= kEventIpSuppressed;
  else
    (to ? event.to : event.ip) = Address{last_ip_};
  return have_ip_;
}

// Whether a TIP or a long TNT of an instruction begins at the packet's offset, whatever becomes of
// it. A short TNT is always whole; a TIP behind the FUP of an interrupt is of that.
bool ItemReader::is_branch_packet() const {
  if (at_tip_.contains(EventKind::kAsyncBranch)) return false;
  ByteSpan packet = packets_.bytes().subspan(packet_offset_);
  if (packet.empty()) return false;
  return (packet[0] & 0x1f) == 0x0d ||
         (packet.size() > 1 && packet[0] == 0x02 && packet[1] == 0xa3);
}

bool ItemReader::end(bool cut) {
  add(ItemKind::kEnd).cut = cut;
  return false;
}

bool ItemReader::stop_at_boundary() {
  Item& item = add(ItemKind::kBoundary);
  item.payload = last_ip_;
  item.suppressed = !have_ip_;
  return false;
}

bool ItemReader::fail(DecodeError error) { return fail_at(error, packet_offset_); }

bool ItemReader::fail_at(DecodeError error, std::size_t offset) {
  if (out_end_ == out_.size()) --out_end_;
  packet_offset_ = offset;
  Item& item = add(ItemKind::kError);
  item.error = error;
  item.cut = is_branch_packet();
  return false;
}

}  // namespace tailtrace::pt
