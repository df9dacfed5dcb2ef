#include "decoder/history/run.h"

#include <algorithm>
#include <array>

namespace tailtrace {
namespace {

// Whether an instruction of this class can have made a record of that kind.
bool fits(RecordKind kind, InstructionClass insn) {
  switch (kind) {
    case RecordKind::kConditional:
      return insn == InstructionClass::kConditional;
    case RecordKind::kJump:
      return insn == InstructionClass::kJump;
    case RecordKind::kCall:
      return insn == InstructionClass::kCall;
    case RecordKind::kReturn:
      return insn == InstructionClass::kReturn;
    case RecordKind::kIndirectJump:
      return insn == InstructionClass::kIndirectJump;
    case RecordKind::kIndirectCall:
      return insn == InstructionClass::kIndirectCall;
    case RecordKind::kFarJump:
      return insn == InstructionClass::kFarJump;
    case RecordKind::kFarCall:
      return insn == InstructionClass::kFarCall;
    case RecordKind::kFarReturn:
      return insn == InstructionClass::kFarReturn;
    case RecordKind::kSystemCall:
      return insn == InstructionClass::kSystemCall;
    case RecordKind::kSystemReturn:
      return insn == InstructionClass::kSystemReturn || insn == InstructionClass::kSystemCall;
    default:
      return true;
  }
}

bool is_branch(RecordKind kind) {
  return kind >= RecordKind::kConditional && kind <= RecordKind::kSystemReturn;
}

bool is_loss(RecordKind kind) { return kind == RecordKind::kOverflow || kind == RecordKind::kGap; }

// Of all bytes, those that are a kind.
const std::array<bool, 256> kKnownKinds = [] {
  std::array<bool, 256> known{};
  for (std::size_t i = 0; i < known.size(); ++i)
    known[i] = kind_name(static_cast<RecordKind>(i)) != kind_name(static_cast<RecordKind>(255));
  known[static_cast<std::size_t>(RecordKind::kNone)] = false;
  return known;
}();

bool is_known(RecordKind kind) { return kKnownKinds[static_cast<std::size_t>(kind)]; }

// `from` was not executed: it is where the run stood when something else happened.
bool stands_at_from(const BranchRecord& record) {
  return record.is_async() || (is_loss(record.kind) && record.from.is_null());
}

GapReason reason_of_loss(const BranchRecord& record) {
  if (record.kind == RecordKind::kOverflow) return GapReason::kOverflow;
  switch (static_cast<GapCause>(record.extra)) {
    case GapCause::kNoCode:
      return GapReason::kNoCode;
    case GapCause::kBadInstruction:
      return GapReason::kBadInstruction;
    case GapCause::kBadTrace:
      return GapReason::kBadTrace;
    case GapCause::kOverwritten:
      return GapReason::kOverwritten;
    case GapCause::kTruncated:
      return GapReason::kTruncated;
    case GapCause::kLost:
      return GapReason::kLost;
    case GapCause::kPartial:
      return GapReason::kPartial;
    case GapCause::kCollision:
      return GapReason::kCollision;
    case GapCause::kNarrowCode:
      return GapReason::kNarrowCode;
    case GapCause::kUnknown:
      break;
  }
  return GapReason::kUnknown;
}

// Adds a gap to a step, unless the gap before it says the same already.
void put_gap(FlowState& state, Step& step, GapReason reason, Address at) {
  step.gap.reason = reason;
  step.gap.at = at;
  step.has_gap = step.shown != 0 || state.last_gap != reason;
  state.last_gap = reason;
}

// Where the flow stands after a record that is no kEnable.
void move_on(FlowState& state, const BranchRecord& record) {
  using Place = FlowState::Place;
  if (record.kind == RecordKind::kDisable) {
    bool stands = stands_at_from(record) && !record.from.is_null();
    state.at = stands ? record.from : Address{};
    state.place = stands ? Place::kPaused : Place::kUnknown;
    return;
  }
  if (record.kind == RecordKind::kCodeChange) ++state.epoch.value;
  state.at = record.to;
  state.place = record.to.is_null() ? Place::kUnknown : Place::kRunning;
}

}  // namespace

RunReader::RunReader(const CodeImage& image, std::size_t remembered_runs)
    : code_(image), remembered_(remembered_runs) {}

Step RunReader::advance(FlowState& state, const BranchRecord& record, std::uint64_t limit_insns) {
  if (record.kind == RecordKind::kEnable) return edge(state, record);
  return run(state, record, limit_insns);
}

// Recording goes on. Where it stopped, and nothing happened meanwhile; or somewhere else.
Step RunReader::edge(FlowState& state, const BranchRecord& record) {
  using Place = FlowState::Place;
  Step step;
  step.gap.lost = record.insns;
  bool contiguous = state.place != Place::kUnknown && state.at == record.to && record.insns == 0;
  // A gap that stands here already covers this one.
  if (!contiguous && state.last_gap == GapReason::kNone) {
    bool replaced = static_cast<EdgeCause>(record.extra) == EdgeCause::kExec;
    put_gap(state, step, replaced ? GapReason::kReplaced : GapReason::kNotRecorded, state.at);
  }
  state.at = record.to;
  state.place = record.to.is_null() ? Place::kUnknown : Place::kRunning;
  return step;
}

Step RunReader::run(FlowState& state, const BranchRecord& record, std::uint64_t limit_insns) {
  Step step;
  step.epoch = state.epoch;
  Check found;
  if (!is_known(record.kind) || state.place == FlowState::Place::kPaused) {
    found.reason = GapReason::kBadTrace;
  } else if (state.place == FlowState::Place::kRunning) {
    step.start = state.at;
    found = check(state, record, limit_insns);
  } else if ((record.insns != 0 || !stands_at_from(record)) && state.last_gap == GapReason::kNone) {
    found.reason = GapReason::kBadTrace;  // nothing told that the flow would be lost
  }
  step.shown = found.shown;
  step.gap.lost = record.insns - std::min<std::uint64_t>(record.insns, found.shown);
  if (step.shown != 0) state.last_gap = GapReason::kNone;
  if (is_loss(record.kind)) {
    put_gap(state, step, reason_of_loss(record), record.from);
  } else if (found.reason != GapReason::kNone) {
    put_gap(state, step, found.reason, found.at);
  } else if (record.to.is_null() && record.kind != RecordKind::kDisable &&
             state.last_gap == GapReason::kNone) {
    put_gap(state, step, GapReason::kBadTrace, record.from);
  }
  move_on(state, record);
  return step;
}

RunReader::Check RunReader::check(const FlowState& state, const BranchRecord& record,
                                  std::uint64_t limit_insns) {
  if (record.insns > limit_insns) return {0, GapReason::kTooLong, state.at};
  std::hash<Address> hash;
  std::size_t slot = hash(state.at) * 3 + hash(record.from) + hash(record.to) * 5 + record.insns;
  Remembered& known = remembered_[slot % remembered_.size()];
  BranchRecord timeless = record;
  timeless.time = 0;
  if (known.used && known.start == state.at && known.epoch == state.epoch &&
      known.record == timeless)
    return known.check;
  code_.set_epoch(state.epoch);
  known = {timeless, state.at, state.epoch, walk(state.at, record), true};
  return known.check;
}

RunReader::Check RunReader::walk(Address start, const BranchRecord& record) {
  const Check contradiction{0, GapReason::kBadTrace, record.from};
  const bool stands = stands_at_from(record);
  if (!stands && record.insns == 0) return contradiction;
  Address at = start;
  Instruction last;
  for (std::uint64_t i = 0; i < record.insns; ++i) {
    std::optional<Instruction> insn = code_.at(at);
    ++walked_insns_;
    if (!insn) return {i, code_.known(at) ? GapReason::kBadInstruction : GapReason::kNoCode, at};
    bool ends = !stands && i + 1 == record.insns;
    if (insn->ends_run() && !ends) return {0, GapReason::kBadTrace, at};
    last = *insn;
    at = insn->next();
  }
  if (stands) {
    bool right = record.from.is_null() || record.from == at;
    return right ? Check{record.insns, GapReason::kNone, {}} : contradiction;
  }
  bool right = last.address == record.from && fits(record.kind, last.kind) &&
               (!is_branch(record.kind) || last.target.is_null() || last.target == record.to);
  return right ? Check{record.insns, GapReason::kNone, {}} : contradiction;
}

}  // namespace tailtrace
