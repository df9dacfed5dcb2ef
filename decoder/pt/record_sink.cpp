#include "decoder/pt/record_sink.h"

#include <utility>

namespace tailtrace::pt {
namespace {

RecordKind kind_of(InstructionClass insn) {
  switch (insn) {
    case InstructionClass::kConditional:
      return RecordKind::kConditional;
    case InstructionClass::kJump:
      return RecordKind::kJump;
    case InstructionClass::kCall:
      return RecordKind::kCall;
    case InstructionClass::kReturn:
      return RecordKind::kReturn;
    case InstructionClass::kIndirectJump:
      return RecordKind::kIndirectJump;
    case InstructionClass::kIndirectCall:
      return RecordKind::kIndirectCall;
    case InstructionClass::kFarJump:
      return RecordKind::kFarJump;
    case InstructionClass::kFarCall:
      return RecordKind::kFarCall;
    case InstructionClass::kFarReturn:
      return RecordKind::kFarReturn;
    case InstructionClass::kSystemCall:
      return RecordKind::kSystemCall;
    case InstructionClass::kSystemReturn:
      return RecordKind::kSystemReturn;
    default:
      return RecordKind::kGap;
  }
}

// Goes to the kernel, and comes back behind itself or elsewhere.
bool enters_kernel(InstructionClass insn) {
  switch (insn) {
    case InstructionClass::kSystemCall:
    case InstructionClass::kSystemReturn:
    case InstructionClass::kFarCall:
    case InstructionClass::kFarJump:
    case InstructionClass::kFarReturn:
    case InstructionClass::kVmEntry:
    case InstructionClass::kVmCall:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RecordSink::put(Address from, Address to, RecordKind kind, std::uint8_t flags,
                     std::uint16_t extra) {
  if (state_.in_transaction) flags |= kFlagInTransaction;
  if (state_.time_exact && state_.time != 0) flags |= kFlagTimeExact;
  records_.push_back({from, to, state_.time, insns_, kind, flags, extra});
  insns_ = 0;
}

void RecordSink::put_branch(const Instruction& insn, Address to) {
  RecordKind kind = kind_of(insn.kind);
  if (kind != RecordKind::kGap) return put(insn.address, to, kind);
  // No branch, and yet the flow moved.
  put({}, to, RecordKind::kGap, kFlagSynthetic, static_cast<std::uint16_t>(GapCause::kBadTrace));
}

// `next` is executed next. Where the flow stood elsewhere it was moved: `when_moved` says how.
void RecordSink::arrive(Address next, RecordKind when_moved) {
  if (to_is_open_) {
    records_.back().to = next;
  } else if (last_) {
    if (last_->ends_run() || next != last_->next()) put_branch(*last_, next);
  } else if (at_) {
    if (next != *at_) put(*at_, next, when_moved, kFlagAsync);
  } else {
    std::uint16_t cause = outside_ ? static_cast<std::uint16_t>(EdgeCause::kFilter) : 0;
    put({}, next, RecordKind::kEnable, kFlagSynthetic, cause);
  }
  to_is_open_ = outside_ = false;
  last_.reset();
  at_ = next;
}

void RecordSink::instructions(std::span<const Instruction> run, const RunState& state) {
  for (const Instruction& insn : run) add(insn, state);
}

void RecordSink::add(const Instruction& insn, const RunState& state) {
  arrive(insn.address, RecordKind::kGap);
  state_ = state;
  last_ = insn;
  at_.reset();
  ++insns_;
}

// The instruction before left the traced code by itself.
void RecordSink::leave(const Event& event) {
  if (!last_) return;
  bool known = !event.has(kEventIpSuppressed) && !event.ip.is_null();
  if (!known && enters_kernel(last_->kind)) return;  // told by where it comes back
  auto cause = static_cast<std::uint16_t>(EdgeCause::kFilter);
  if (known || !last_->target.is_null()) {
    arrive(known ? event.ip : last_->target, RecordKind::kGap);
    put(*at_, {}, RecordKind::kDisable, kFlagAsync, cause);
  } else {
    put(last_->address, {}, RecordKind::kDisable, 0, cause);
  }
  last_.reset();
  at_.reset();
  outside_ = true;
}

void RecordSink::transaction(const Event& event) {
  if (event.has(kEventStatusUpdate) || event.has(kEventIpSuppressed)) return;
  if (event.has(kEventAborted)) return;  // the branch to the fallback follows
  arrive(event.ip, RecordKind::kGap);
  put(event.ip, event.ip,
      event.has(kEventSpeculative) ? RecordKind::kTransactionBegin : RecordKind::kTransactionCommit,
      kFlagAsync);
}

void RecordSink::event(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnabled:
      if (!event.has(kEventStatusUpdate)) arrive(event.ip, RecordKind::kSignal);
      break;
    case EventKind::kDisabled:
      leave(event);
      break;
    case EventKind::kAsyncDisabled:
    case EventKind::kEndOfTrace:
      arrive(event.ip, RecordKind::kGap);
      break;
    case EventKind::kAsyncBranch:
      arrive(event.ip, RecordKind::kGap);
      arrive(event.to, RecordKind::kInterrupt);
      break;
    case EventKind::kOverflow:
      lose(RecordKind::kOverflow, 0);
      if (!event.has(kEventIpSuppressed)) arrive(event.ip, RecordKind::kGap);
      break;
    case EventKind::kTransaction:
      transaction(event);
      break;
    default:
      break;
  }
}

void RecordSink::gap(const Gap& gap) {
  lose(RecordKind::kGap, static_cast<std::uint16_t>(gap_cause(gap.error)));
}

// What was executed before the loss stays; a branch whose target is lost is its last instruction.
void RecordSink::lose(RecordKind kind, std::uint16_t cause) {
  bool at_branch = last_ && last_->ends_run();
  put(at_branch ? last_->address : Address{}, {}, kind, 0, cause);
  last_.reset();
  at_.reset();
  outside_ = false;
  to_is_open_ = true;
}

std::vector<BranchRecord> RecordSink::finish(Address pc) {
  arrive(pc, RecordKind::kDiscontinuity);
  put(pc, {}, RecordKind::kDisable, kFlagAsync | kFlagSynthetic,
      static_cast<std::uint16_t>(EdgeCause::kDebugger));
  last_.reset();
  at_.reset();
  state_ = {};
  return std::exchange(records_, {});
}

}  // namespace tailtrace::pt
