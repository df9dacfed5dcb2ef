// Where the flow goes on when it got lost and the packets did not.
#include "decoder/pt/flow/flow.h"

namespace tailtrace::pt {
namespace {

// The packets can be read, but do not fit the code that is known.
bool is_of_code(DecodeError error) {
  switch (error) {
    case DecodeError::kBadQuery:
    case DecodeError::kNoCode:
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

// After an error of the code: to the next item that says where it goes on. False where a PSB comes
// first. The processor counts on no call from before then (SDM, "RET compression").
bool FlowWalker::skip_to_enabling(std::size_t limit) {
  if (config_.resumption != Resumption::kAtEnabling || !is_of_code(gap_.error)) return false;
  if (held_) note_skipped(*held_);
  held_.reset();
  outcome_count_ = 0;
  clear_returns();
  enabled_ = anchored_ = false;
  straight_on({});
  for (;; items_.take()) {
    const Item& item = items_.peek();
    if (ends_stream(item.kind) || item.offset_bytes >= limit) return false;
    if (item.kind == ItemKind::kEvent) {
      const EventKind kind = item.event.kind;
      if (kind == EventKind::kEnabled || kind == EventKind::kOverflow) return true;
      note_skipped(item.event);
    }
    passed(item);
  }
}

}  // namespace tailtrace::pt
