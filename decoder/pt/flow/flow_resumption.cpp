// Where the flow goes on when it got lost and the packets did not.
#include "decoder/pt/flow/flow.h"

namespace tailtrace::pt {
namespace {

// The packets can be read, but do not fit the code that is known.
bool is_of_code(DecodeError error) {
  switch (error) {
    case DecodeError::kBadQuery:
    case DecodeError::kNoCode:
    case DecodeError::kNarrowCode:
    case DecodeError::kBadInstruction:
    case DecodeError::kNoIp:
    case DecodeError::kBadReturn:
    case DecodeError::kReturnStackEmpty:
    case DecodeError::kEventIgnored:
    case DecodeError::kEndlessLoop:
      return true;
    default:
      return false;
  }
}

}  // namespace

// What it says holds until something else is said.
void FlowWalker::note_skipped(const Event& event) {
  if (event.kind == EventKind::kExecMode) use_mode(event.mode);
  if (event.kind == EventKind::kTransaction) in_transaction_ = event.has(kEventSpeculative);
}

// After an error of the code: to the next event that says where flow is. False where a PSB comes
// first. The processor counts on no call from before tracing is enabled or an overflow ends (SDM,
// "RET compression"); what else it counts on is found to be missing.
bool FlowWalker::skip_to_address(std::size_t limit) {
  if (!is_of_code(gap_.error)) return false;
  outcome_count_ = 0;
  clear_returns();
  enabled_ = anchored_ = false;
  straight_on({});
  if (held_) {
    // What PSB+ says is read anew at that PSB.
    const bool from_psb = held_->has(kEventStatusUpdate);
    if (!from_psb && held_->ip != gap_.ip && stand_at(*held_)) return true;
    note_skipped(*held_);
    held_.reset();
  }
  for (;; items_.take()) {
    const Item& item = items_.peek();
    if (ends_stream(item.kind) || item.offset_bytes >= limit) return false;
    if (item.kind == ItemKind::kEvent) {
      if (stand_at(item.event)) return true;
      note_skipped(item.event);
    }
    passed(item);
  }
}

// Where it says, if it does. All outcomes and targets from before a FUP were sent before it, as
// those from before a mode that comes with a TIP: no such TIP is deferred.
bool FlowWalker::stand_at(const Event& event) {
  if (config_.resumption != Resumption::kAtAddress) return false;
  switch (event.kind) {
    case EventKind::kEnabled:
    case EventKind::kOverflow:
      return true;
    case EventKind::kAsyncBranch:
    case EventKind::kAsyncDisabled:
      break;
    case EventKind::kExecMode:
      // It came with a far branch's TIP, or before a FUP.
      if (event.has(kEventIpSuppressed) || !knows(event.mode)) return false;
      break;
    case EventKind::kTransaction:
    case EventKind::kAsyncPaging:
    case EventKind::kAsyncVmcs:
    case EventKind::kPtwrite:
    case EventKind::kExstop:
    case EventKind::kMwait:
    case EventKind::kControlFlow:
      if (event.has(kEventIpSuppressed)) return false;
      break;
    default:
      return false;
  }
  enabled_ = true;
  straight_on(event.ip);
  return true;
}

}  // namespace tailtrace::pt
