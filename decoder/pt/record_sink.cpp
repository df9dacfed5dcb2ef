#include "decoder/pt/record_sink.h"

#include <utility>

#include "decoder/code/branch_kind.h"
#include "decoder/pt/far.h"

namespace tailtrace::pt {
namespace {

// Whether going to `ip` is more than not taking a conditional branch.
bool leaves(const Instruction& branch, Address ip) {
  return branch.kind != InstructionClass::kConditional || ip != branch.next();
}

// Whether the event's address is that of the instruction to be executed next.
bool names_next(const Event& event) {
  switch (event.kind) {
    case EventKind::kAsyncDisabled:
    case EventKind::kAsyncBranch:
    case EventKind::kEndOfTrace:
      return true;
    case EventKind::kTransaction:
      return !event.has(kEventIpSuppressed);
    default:
      return false;
  }
}

bool is_loss(RecordKind kind) { return kind == RecordKind::kOverflow || kind == RecordKind::kGap; }

bool makes_records(const Event& event) {
  if (event.has(kEventStatusUpdate)) return false;
  return names_next(event) || event.kind == EventKind::kEnabled ||
         event.kind == EventKind::kDisabled || event.kind == EventKind::kOverflow;
}

}  // namespace

BranchRecord RecordSink::make(Address from, Address to, RecordKind kind, std::uint8_t flags) const {
  BranchRecord record{from, to, time_, insns_, kind, flags, 0};
  record.flags |= kernel_flag(from);
  if (in_transaction_) record.flags |= kFlagInTransaction;
  // A direct branch needs no packet: its time is that of one before it.
  bool told = kind != RecordKind::kJump && kind != RecordKind::kCall;
  if (time_exact_ && time_ != 0 && told) record.flags |= kFlagTimeExact;
  return record;
}

void RecordSink::add(const BranchRecord& record) {
  records_.push_back(record);
  insns_ = 0;
}

void RecordSink::instructions(std::span<const Instruction> run, const RunState& state) {
  // The branch that led here has the time and state of its own run.
  arrive(run.front().address);
  time_ = state.time;
  time_exact_ = state.time_exact;
  in_transaction_ = state.in_transaction;
  for (const Instruction& insn : run) {
    if (newest_) arrive(insn.address);
    newest_ = insn;
    ++insns_;
  }
}

// The instruction at `ip` is the next one: that tells where the newest one led.
void RecordSink::arrive(Address ip) {
  if (away_) come_back(ip);
  if (!running_) {
    add(make({}, ip, RecordKind::kEnable, kFlagSynthetic));
  } else if (!newest_) {
    if (at_ != ip) add(make(at_, ip, RecordKind::kDiscontinuity, kFlagAsync));
  } else if (ip != newest_->next() || newest_->ends_run()) {
    if (newest_->is_branch())
      add(make(newest_->address, ip, branch_kind(newest_->kind), 0));
    else
      add(make(newest_->next(), ip, RecordKind::kDiscontinuity, kFlagAsync));
  }
  newest_.reset();
  running_ = true;
  at_ = ip;
  if (told_time_ != 0) time_ = std::exchange(told_time_, 0);
}

// Where the flow is, or the branch that took it to where nobody knows.
BranchRecord RecordSink::position(RecordKind kind) const {
  if (!running_) return make({}, {}, kind, 0);
  if (!newest_) return make(at_, {}, kind, kFlagAsync);
  if (newest_->is_branch()) return make(newest_->address, {}, kind, 0);
  return make(newest_->next(), {}, kind, kFlagAsync);
}

void RecordSink::come_back(Address ip) {
  Away away = *std::exchange(away_, std::nullopt);
  running_ = true;
  at_ = ip;
  newest_.reset();
  if (away.record.kind == RecordKind::kDisable) return come_back_from(away, ip);
  away.record.to = ip;
  records_.push_back(away.record);
}

void RecordSink::come_back_from(const Away& away, Address ip) {
  BranchRecord record = away.record;
  auto filter = static_cast<std::uint16_t>(EdgeCause::kFilter);
  if (!away.by) {
    if (record.from == ip) {
      insns_ = record.insns;  // the run goes on
      return;
    }
    record.kind = RecordKind::kSignal;
    record.to = ip;
    records_.push_back(record);
    return;
  }
  bool came_back = is_far(away.by->kind) || (away.told_to == ip && leaves(*away.by, ip));
  Address to = came_back ? ip : away.told_to;
  if (!to.is_null() && leaves(*away.by, to)) {
    record.kind = branch_kind(away.by->kind);
    record.to = to;
    records_.push_back(record);
    if (came_back) return;
    record = make(to, {}, RecordKind::kDisable, kFlagAsync);
  }
  record.extra = filter;
  records_.push_back(record);
  record = make({}, ip, RecordKind::kEnable, 0);
  record.extra = filter;
  records_.push_back(record);
}

void RecordSink::disabled(const Event& event) {
  Away away;
  away.record = position(RecordKind::kDisable);
  if (event.kind == EventKind::kDisabled && newest_) {
    away.record = make(newest_->address, {}, RecordKind::kDisable, 0);
    away.by = newest_;
    away.told_to = left_for(*newest_, event.ip);
  }
  if (aborted_) away.record.flags |= kFlagAbort;
  aborted_ = false;
  away_ = away;
  insns_ = 0;
  running_ = false;
  newest_.reset();
}

void RecordSink::overflow(const Event& event) {
  if (!away_) {
    away_ = Away{position(RecordKind::kOverflow), {}, {}};
  } else if (away_->by && is_far(away_->by->kind)) {
    // The system call is known; what is lost came later.
    records_.push_back(away_->record);
    away_ = Away{make({}, {}, RecordKind::kOverflow, 0), {}, {}};
  } else if (away_->record.kind == RecordKind::kDisable) {
    away_->record.kind = RecordKind::kOverflow;
  }
  insns_ = 0;
  running_ = false;
  newest_.reset();
  if (!event.ip.is_null()) come_back(event.ip);
}

void RecordSink::lost(GapCause cause) {
  time_exact_ = false;
  if (!away_) {
    away_ = Away{position(RecordKind::kGap), {}, {}};
  } else if (away_->by && is_far(away_->by->kind)) {
    records_.push_back(away_->record);
    away_ = Away{make({}, {}, RecordKind::kGap, 0), {}, {}};
  }
  away_->record.kind = RecordKind::kGap;
  away_->record.extra = static_cast<std::uint16_t>(cause);
  insns_ = 0;
  running_ = false;
  newest_.reset();
}

void RecordSink::transaction(const Event& event) {
  aborted_ = event.has(kEventAborted);
  if (aborted_) return;
  bool begins = event.has(kEventSpeculative);
  add(make(event.ip, event.ip,
           begins ? RecordKind::kTransactionBegin : RecordKind::kTransactionCommit, kFlagAsync));
  in_transaction_ = begins;
}

// It is later; a branch that is not yet told has its own time.
void RecordSink::tell_time(const Event& event) {
  if (!event.has(kEventHasTime)) return;
  (newest_ ? told_time_ : time_) = event.time;
  if (!newest_) time_exact_ = false;
}

void RecordSink::event(const Event& event) {
  if (!makes_records(event)) {
    if (event.kind == EventKind::kTransaction && !running_)
      in_transaction_ = event.has(kEventSpeculative);
    return tell_time(event);
  }
  // The branch that led there was before the event.
  if (names_next(event)) arrive(event.ip);
  if (event.kind == EventKind::kOverflow && !event.to.is_null()) arrive(event.to);
  if (event.has(kEventHasTime)) time_ = event.time;
  time_exact_ = event.has(kEventTimeExact);
  told_time_ = 0;
  switch (event.kind) {
    case EventKind::kEnabled:
      if (away_)
        come_back(event.ip);
      else
        arrive(event.ip);
      break;
    case EventKind::kDisabled:
    case EventKind::kAsyncDisabled:
      disabled(event);
      break;
    case EventKind::kAsyncBranch: {
      if (event.to.is_null()) return disabled(event);
      RecordKind kind = aborted_ ? RecordKind::kTransactionAbort : RecordKind::kInterrupt;
      std::uint8_t flags = aborted_ ? kFlagAsync | kFlagAbort : kFlagAsync;
      aborted_ = false;
      add(make(event.ip, event.to, kind, flags));
      at_ = event.to;
      break;
    }
    case EventKind::kOverflow:
      overflow(event);
      break;
    case EventKind::kTransaction:
      transaction(event);
      break;
    case EventKind::kEndOfTrace:
      add(make(event.ip, {}, RecordKind::kDisable, kFlagAsync));
      running_ = false;
      break;
    default:
      break;
  }
}

// Where tracing was off the flow had not come to `gap.ip`.
void RecordSink::gap(const Gap& gap) {
  const bool is_off = away_ && !is_loss(away_->record.kind);
  if (!is_off && !gap.executed && !gap.ip.is_null()) arrive(gap.ip);
  if (away_) records_.push_back(std::exchange(away_, std::nullopt)->record);
  time_exact_ = false;
  away_ = Away{position(RecordKind::kGap), {}, {}};
  away_->record.extra = static_cast<std::uint16_t>(gap_cause(gap.error));
  insns_ = 0;
  running_ = in_transaction_ = aborted_ = false;
  newest_.reset();
}

// Closes what is open; the flow is known to be at `at_` afterwards, or not at all.
std::vector<BranchRecord> RecordSink::finish(Address pc) {
  if (away_ && away_->record.kind == RecordKind::kDisable && !away_->by &&
      away_->record.from != pc) {
    // It stands elsewhere than the trace left it.
    away_->record.kind = RecordKind::kDiscontinuity;
    away_->record.to = pc;
    records_.push_back(std::exchange(away_, std::nullopt)->record);
    running_ = true;
    at_ = pc;
  }
  arrive(pc);
  BranchRecord end = make(pc, {}, RecordKind::kDisable, kFlagAsync | kFlagSynthetic);
  end.extra = static_cast<std::uint16_t>(EdgeCause::kDebugger);
  add(end);
  running_ = false;
  return drain();
}

std::vector<BranchRecord> RecordSink::drain() { return std::exchange(records_, {}); }

std::uint32_t RecordSink::hand_over(Address ip) {
  arrive(ip);
  return insns_;
}

void RecordSink::take_back(Address ip, std::uint32_t insns, const RunState& state) {
  running_ = true;
  newest_.reset();
  at_ = ip;
  insns_ = insns;
  time_ = state.time;
  time_exact_ = state.time_exact;
  in_transaction_ = state.in_transaction;
}

void RecordSink::branches(const BranchRun& run) {
  std::uint32_t open = hand_over(run.begin);
  std::size_t first = records_.size();
  records_.insert(records_.end(), run.records.begin(), run.records.end());
  if (run.records.empty())
    open += run.open_insns;
  else
    records_[first].insns += std::exchange(open, run.open_insns);
  take_back(run.end, open, run.state);
}

void RecordSink::finish() {
  if (away_)
    records_.push_back(std::exchange(away_, std::nullopt)->record);
  else if (running_)
    add(position(RecordKind::kDisable));
  running_ = false;
  newest_.reset();
}

}  // namespace tailtrace::pt
