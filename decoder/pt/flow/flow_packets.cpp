// Packets that are events, or belong to an IP packet that comes behind them.
#include <algorithm>

#include "decoder/pt/flow/flow_items.h"

namespace tailtrace::pt {
namespace {

// Control flow whose FUP, when CFE does not ask for one, is that of the branch it causes.
bool shares_fup(std::uint8_t type) {
  switch (type) {
    case kCfeInterrupt:
    case kCfeSmi:
    case kCfeRsm:
    case kCfeSipi:
    case kCfeInit:
    case kCfeVmExit:
    case kCfeVmExitInterrupt:
    case kCfeUserInterrupt:
      return true;
    default:
      return false;
  }
}

// EVD types as a set; those to come are in none.
constexpr unsigned bit_of(std::uint8_t type) { return type <= kEvdVmxr ? 1u << type : 0; }

// The data that control flow of a type may have; types to come may have any.
constexpr unsigned data_of(std::uint8_t type) {
  switch (type) {
    case kCfeInterrupt:
      return bit_of(kEvdCr2);
    case kCfeVmExit:
    case kCfeVmExitInterrupt:
      return bit_of(kEvdVmxq) | bit_of(kEvdVmxr);
    case kCfeIret:
    case kCfeSmi:
    case kCfeRsm:
    case kCfeSipi:
    case kCfeInit:
    case kCfeVmEntry:
    case kCfeShutdown:
    case kCfeUserInterrupt:
    case kCfeUiret:
      return 0;
    default:
      return ~0u;
  }
}

constexpr bool may_have(std::uint8_t type, unsigned data) { return (data & ~data_of(type)) == 0; }

}  // namespace

// --- Modes and address spaces ----------------------------------------------------------------

bool ItemReader::take_mode_exec(const Packet& packet) {
  std::optional<CodeMode> mode = mode_of(packet.payload);
  if (!mode) return fail(DecodeError::kBadPacket);
  Event event = make(EventKind::kExecMode);
  event.mode = *mode;
  exec_bits_before_ = exec_bits_;
  exec_bits_ = packet.payload;
  return bind_to_tip(event);
}

bool ItemReader::take_mode_tsx(const Packet& packet) {
  Event event = make(EventKind::kTransaction);
  if ((packet.payload & 1) != 0) event.flags |= kEventSpeculative;
  if ((packet.payload & 2) != 0) event.flags |= kEventAborted;
  if (!enabled_) {
    event.flags |= kEventIpSuppressed;
    return emit(event);
  }
  // An abort goes on as an asynchronous branch from the same FUP.
  return bind_to_fup(event, !event.has(kEventAborted));
}

bool ItemReader::take_pip(const Packet& packet) {
  bool async = at_tip_.find(EventKind::kAsyncBranch) != nullptr;
  Event event = make(async ? EventKind::kAsyncPaging : EventKind::kPaging);
  event.payload = packet.payload;
  if (packet.bits != 0) event.flags |= kEventNonRoot;
  return async ? bind_to_tip(event) : emit(event);
}

bool ItemReader::take_vmcs(const Packet& packet) {
  bool async = at_tip_.find(EventKind::kAsyncBranch) != nullptr;
  Event event = make(async ? EventKind::kAsyncVmcs : EventKind::kVmcs);
  event.payload = packet.payload;
  if (!async) return emit(event);
  // The VMCS is changed before the address space.
  if (!bind_to_tip(event)) return false;
  if (Pending* paging = at_tip_.find(EventKind::kAsyncPaging))
    std::swap(paging->event, at_tip_.items[at_tip_.size - 1].event);
  return true;
}

// --- Power, PTWRITE, event trace, triggers, time ---------------------------------------------

// It shares the FUP of the EXSTOP that comes behind it (SDM, "MWAIT packet").
bool ItemReader::take_mwait(const Packet& packet) {
  Event event = make(EventKind::kMwait);
  event.payload = packet.payload;
  if (!ovf_comes_first()) return bind_to_fup(event);
  event.flags |= kEventIpSuppressed;
  return emit(event);
}

bool ItemReader::take_exstop(const Packet& packet) {
  Event event = make(EventKind::kExstop);
  if (packet.has_ip) return bind_to_fup(event);
  event.flags |= kEventIpSuppressed;
  // It has no FUP that they could share: the next one is of something else.
  return emit_mwaits() && emit(event);
}

// Without an address.
bool ItemReader::emit_mwaits() {
  auto is_mwait = [](const Pending& p) { return p.event.kind == EventKind::kMwait; };
  for (Pending& pending : at_fup_) {
    if (!is_mwait(pending)) continue;
    pending.event.flags |= kEventIpSuppressed;
    if (!emit(pending.event)) return false;
  }
  at_fup_.size =
      static_cast<std::size_t>(std::ranges::remove_if(at_fup_, is_mwait).begin() - at_fup_.begin());
  return true;
}

bool ItemReader::take_ptw(const Packet& packet) {
  Event event = make(EventKind::kPtwrite);
  event.payload = packet.payload;
  event.size_bytes = packet.bits;
  if (packet.has_ip) return bind_to_fup(event);
  event.flags |= kEventIpSuppressed;
  return emit(event);
}

bool ItemReader::take_cfe(const Packet& packet) {
  if (!may_have(packet.bits, std::exchange(data_, 0))) return fail(DecodeError::kBadContext);
  Event event = make(EventKind::kControlFlow);
  event.payload = packet.bits | packet.payload << 8;
  if (packet.has_ip) return bind_to_fup(event);
  // RSM and SIPI come from where no code is traced: their FUP belongs to the branch alone.
  if (packet.bits == kCfeRsm || packet.bits == kCfeSipi) event.flags |= kEventIpSuppressed;
  if (enabled_ && shares_fup(packet.bits)) return bind_to_fup(event, false);
  event.flags |= kEventIpSuppressed;
  return emit(event);
}

// Where it does not fit what came before, the CFE that that belongs to is lost.
bool ItemReader::take_evd(const Packet& packet) {
  const bool again = (data_ & bit_of(packet.bits)) != 0;
  data_ |= bit_of(packet.bits);
  if (again || !(may_have(kCfeInterrupt, data_) || may_have(kCfeVmExit, data_)))
    return fail(DecodeError::kBadContext);
  return emit_standalone(EventKind::kEventData, packet.payload, kEventIpSuppressed, packet.bits);
}

bool ItemReader::take_trig(const Packet& packet) {
  Event event = make(EventKind::kTrigger);
  bool counted = (packet.bits & 1) != 0;
  event.payload = packet.payload;
  if ((packet.bits & 2) != 0) event.flags |= kEventSeveral;
  if (packet.has_ip) {
    // The FUP is exact, so there is nothing to count.
    if (!counted || packet.payload >> 8 != 0) return fail(DecodeError::kBadPacket);
    return bind_to_fup(event);
  }
  if (counted && packet.payload >> 8 != 0 && !enabled_) return fail(DecodeError::kBadPacket);
  if (counted)
    event.payload |= kTriggerCounted;
  else
    event.flags |= kEventIpSuppressed;
  return emit(event);
}

// Goes on at the OVF then.
bool ItemReader::skip_cut_cyc(const Packet& packet) {
  bool cut = config_.errata.skd007 && is_cut_by_ovf(packet, packets_.bytes(), packets_.offset());
  if (cut) packets_.seek(packet_offset_ + 1);
  return cut;
}

bool ItemReader::take_cyc(const Packet& packet) {
  if (skip_cut_cyc(packet)) return true;
  clock_.take(packet, false);
  fresh_time_ = true;
  return true;
}

}  // namespace tailtrace::pt
