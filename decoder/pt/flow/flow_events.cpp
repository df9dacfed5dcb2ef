// Where events belong: which are due at an address, which bind to an instruction, and what they do.
#include <utility>

#include "decoder/pt/far.h"
#include "decoder/pt/flow/flow.h"

namespace tailtrace::pt {
namespace {

// Control flow that is the work of an instruction.
bool names_its_instruction(const Event& event) {
  std::uint64_t type = event.payload & 0xff;
  return type == kCfeIret || type == kCfeVmEntry || type == kCfeUiret;
}

// VMPTRLD: 0F C7 /6 with memory, neither 66 nor F3 (SDM volume 3, "VMX instruction reference").
bool is_vmptrld(ByteSpan bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && (bytes[at] & 0xf0) == 0x40) ++at;
  return at + 2 < bytes.size() && bytes[at] == 0x0f && bytes[at + 1] == 0xc7 &&
         (bytes[at + 2] >> 3 & 7) == 6 && bytes[at + 2] >> 6 != 3;
}

// UIRET: F3 0F 01 EC. Any other far return but RETF is a kind of IRET.
bool is_uiret(ByteSpan bytes) {
  return bytes.size() == 4 && bytes[0] == 0xf3 && bytes[1] == 0x0f && bytes[2] == 0x01 &&
         bytes[3] == 0xec;
}

}  // namespace

// An event counts once the outcomes before it are used up.
void FlowWalker::hold_event() {
  if (held_ || outcome_count_ != 0) return;
  const Item& item = items_.peek();
  if (item.kind != ItemKind::kEvent) return;
  held_ = item.event;
  held_->time = not_before(time_, held_->time);
  // Until it is delivered, what runs has the time before.
  held_time_ = {not_before(time_, item.time), item.time_exact};
  held_offset_bytes_ = item.offset_bytes;
  if (next_change_ < config_.code_changes.size()) use_changes(item.offset_bytes, item.time);
  items_.take();
  if (counts_to_trigger()) held_->ip = {};
}

// --- At an address ---------------------------------------------------------------------------

bool FlowWalker::is_due(const Instruction* behind) {
  const Event& event = *held_;
  bool here = event.has(kEventIpSuppressed) || event.ip == ip_;
  switch (event.kind) {
    case EventKind::kDisabled:
      return false;
    case EventKind::kAsyncDisabled: {
      if (event.ip != ip_) return false;
      // SKD022: a VM entry that ends the tracing may look like an interrupt before it.
      std::optional<Instruction> insn;
      if (config_.errata.skd022 && enabled_) insn = reader_->at(ip_);
      if (!insn || insn->kind != InstructionClass::kVmEntry) return true;
      held_->kind = EventKind::kDisabled;
      held_->ip = held_->to;
      held_->to = {};
      return false;
    }
    case EventKind::kAsyncBranch:
      return event.ip == ip_;
    case EventKind::kTransaction:
      // BDM64: the branch before an abort may be recorded with a wrong target.
      if (!here && config_.errata.bdm64 && event.has(kEventAborted) && behind != nullptr &&
          may_branch(behind->kind) && !can_reach(event.ip))
        ip_ = event.ip;
      return event.has(kEventIpSuppressed) || event.ip == ip_;
    case EventKind::kPaging:
    case EventKind::kVmcs:
    case EventKind::kPtwrite:
      return !enabled_;
    case EventKind::kExecMode:
    case EventKind::kAsyncPaging:
    case EventKind::kAsyncVmcs:
    case EventKind::kExstop:
    case EventKind::kMwait:
    case EventKind::kInterruptFlag:
      return here || !enabled_;
    case EventKind::kCbr:
      return !event.has(kEventStatusUpdate) || here || !enabled_;
    case EventKind::kControlFlow:
      return !enabled_ || (here && !names_its_instruction(event));
    case EventKind::kTrigger:
      return trigger_is_due();
    default:
      return true;
  }
}

bool FlowWalker::counts_to_trigger() const {
  return held_ && held_->kind == EventKind::kTrigger && (held_->payload & kTriggerCounted) != 0;
}

bool FlowWalker::trigger_is_due() {
  const Event& event = *held_;
  if (event.has(kEventIpSuppressed) || !enabled_) return true;
  if (!counts_to_trigger()) return event.ip == ip_;
  std::uint64_t count = event.payload >> 8 & 0xffff;
  if (!anchored_ || since_anchor_ > count) {
    next_ = error(DecodeError::kBadPacket);
    return false;
  }
  if (since_anchor_ != count) return false;
  held_->ip = ip_;
  held_->payload &= 0xff;
  return true;
}

bool FlowWalker::can_reach(Address to) {
  constexpr int kMaxSteps = 256;
  Address at = ip_;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (at == to) return true;
    std::optional<Instruction> insn = reader_->at(at);
    if (!insn) return false;
    if (insn->kind == InstructionClass::kJump || insn->kind == InstructionClass::kCall)
      at = insn->target;
    else if (may_branch(insn->kind))
      return false;
    else
      at = insn->next();
  }
  return false;
}

// --- To an instruction -----------------------------------------------------------------------

bool FlowWalker::is_bound(const Instruction& insn) {
  auto once = [](bool& bound) { return !std::exchange(bound, true); };
  switch (held_->kind) {
    case EventKind::kDisabled:
      return is_bound_disable(insn);
    case EventKind::kPaging:
      return (is_far(insn.kind) || insn.kind == InstructionClass::kMovCr3) && once(bound_paging_);
    case EventKind::kVmcs:
      return (is_far(insn.kind) || is_vmptrld(reader_->bytes_of(insn))) && once(bound_vmcs_);
    case EventKind::kPtwrite:
      if (held_->has(kEventIpSuppressed) ? insn.kind != InstructionClass::kPtwrite
                                         : held_->ip != insn.address)
        return false;
      if (!once(bound_ptwrite_)) return false;
      held_->ip = insn.address;
      held_->flags &= static_cast<std::uint16_t>(~kEventIpSuppressed);
      return true;
    case EventKind::kControlFlow:
      return names_its_instruction(*held_) && is_bound_control_flow(insn) && once(bound_flow_);
    default:
      return false;
  }
}

bool FlowWalker::is_bound_disable(const Instruction& insn) {
  bool direct = insn.kind == InstructionClass::kJump || insn.kind == InstructionClass::kCall;
  if (!held_->has(kEventIpSuppressed))
    return direct ? insn.target == held_->ip : may_branch(insn.kind);
  if (is_far(insn.kind) || insn.kind == InstructionClass::kMovCr3) return true;
  // A branch that has no packet of its own was the last.
  if (!direct && may_branch(insn.kind)) return true;
  // SKL014: a direct branch out of the filters may come without its target. Without filters there
  // is no such branch.
  return direct && config_.errata.skl014 && outside_filters(insn.target);
}

bool FlowWalker::is_bound_control_flow(const Instruction& insn) {
  if (!held_->has(kEventIpSuppressed)) return held_->ip == insn.address;
  switch (held_->payload & 0xff) {
    case kCfeVmEntry:
      return insn.kind == InstructionClass::kVmEntry;
    case kCfeUiret:
      return insn.kind == InstructionClass::kFarReturn && is_uiret(reader_->bytes_of(insn));
    default:
      return insn.kind == InstructionClass::kFarReturn && !is_uiret(reader_->bytes_of(insn));
  }
}

// True when filters are known and `address` is not traced.
bool FlowWalker::outside_filters(Address address) const {
  bool filtered = false, inside = false, any = false;
  for (const AddressFilter& filter : config_.filters) {
    if (filter.kind == AddressFilter::Kind::kOff) continue;
    any = true;
    bool in = filter.first <= address && address <= filter.last;
    if (filter.kind == AddressFilter::Kind::kStop && in) return true;
    if (filter.kind != AddressFilter::Kind::kFilter) continue;
    filtered = true;
    inside |= in;
  }
  return any && filtered && !inside;
}

// PSB+ says that tracing is enabled where it is not known to be, or the other way round. If what
// comes next does not fit, packets were lost before it, and decoding goes on at that PSB.
bool FlowWalker::is_doubtful(const Event& event) const {
  return event.has(kEventStatusUpdate) && enabled_ == event.has(kEventIpSuppressed);
}

// --- What they do ----------------------------------------------------------------------------

FlowWalker::Next FlowWalker::deliver() {
  Event event = *held_;
  flush();
  time_ = held_time_.ticks;
  time_exact_ = held_time_.exact;
  if (Next next = apply(event); next != Next::kGoOn) return next;
  if (!is_doubtful(event)) use_up(held_offset_bytes_);
  sink_.event(event);
  held_.reset();
  // An event is a packet too: a loop that passes it is not without one.
  return straight_on(ip_);
}

FlowWalker::Next FlowWalker::apply(Event& event) {
  switch (event.kind) {
    case EventKind::kEnabled:
      return apply_enabled(event);
    case EventKind::kDisabled:
    case EventKind::kAsyncDisabled:
      if (!enabled_) return error(DecodeError::kBadContext);
      enabled_ = anchored_ = false;
      return Next::kGoOn;
    case EventKind::kAsyncBranch:
      if (!enabled_) return error(DecodeError::kBadContext);
      if (event.has(kEventIpSuppressed)) return error(DecodeError::kNoIp);
      anchor();
      return straight_on(event.to);
    case EventKind::kOverflow:
      if (enabled_) event.to = ip_;
      in_transaction_ = false;
      enabled_ = !event.has(kEventIpSuppressed);
      anchored_ = enabled_;
      since_anchor_ = 0;
      return straight_on(event.ip);
    case EventKind::kExecMode:
      return apply_mode(event);
    case EventKind::kTransaction:
      in_transaction_ = event.has(kEventSpeculative);
      anchor();
      return Next::kGoOn;
    case EventKind::kStop:
      return enabled_ ? error(DecodeError::kBadContext) : Next::kGoOn;
    case EventKind::kAsyncVmcs:
    case EventKind::kVmcs:
    case EventKind::kExstop:
    case EventKind::kTrigger:
    case EventKind::kInterruptFlag:
      if (!event.has(kEventIpSuppressed)) anchor();
      return Next::kGoOn;
    case EventKind::kControlFlow:
      if (!event.has(kEventIpSuppressed) && !names_its_instruction(event)) anchor();
      return Next::kGoOn;
    default:
      return Next::kGoOn;
  }
}

FlowWalker::Next FlowWalker::apply_enabled(Event& event) {
  if (enabled_) return error(DecodeError::kBadContext);
  if (ip_ == event.ip) event.flags |= kEventResumed;
  // Outcomes before it belonged to what was traced before.
  outcome_count_ = 0;
  enabled_ = true;
  anchor();
  return straight_on(event.ip);
}

FlowWalker::Next FlowWalker::apply_mode(const Event& event) {
  if (event.has(kEventStatusUpdate) && enabled_ && mode_known_ && mode_ != event.mode)
    return error(DecodeError::kBadStatusUpdate);
  mode_known_ = true;
  use_mode(event.mode);
  anchor();
  return Next::kGoOn;
}

}  // namespace tailtrace::pt
