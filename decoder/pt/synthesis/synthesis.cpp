#include "decoder/pt/synthesis/synthesis.h"

#include <algorithm>
#include <optional>
#include <string>

#include "decoder/code/code_changes.h"
#include "decoder/pt/loop_guard.h"
#include "decoder/pt/packets/packet_writer.h"
#include "decoder/pt/return_memory.h"
#include "decoder/pt/synthesis/run_planner.h"

namespace tailtrace::pt {
namespace {

// The first of the newest records that hold `insns` instructions at most, if any do.
std::size_t first_of_newest(std::span<const BranchRecord> records, std::uint64_t insns) {
  std::uint64_t sum = 0;
  std::size_t i = records.size();
  while (i != 0 && (sum == 0 || sum + records[i - 1].insns <= insns)) sum += records[--i].insns;
  return i;
}

Epoch epoch_after(std::span<const BranchRecord> records, Epoch first) {
  for (const BranchRecord& record : records)
    if (record.kind == RecordKind::kCodeChange) ++first.value;
  return first;
}

// Whether the instruction can have done what the record says.
bool fits(const Instruction& insn, const BranchRecord& record) {
  switch (insn.kind) {
    case InstructionClass::kConditional:
      return record.to == insn.target || record.to == insn.next();
    case InstructionClass::kJump:
    case InstructionClass::kCall:
      return record.to == insn.target;
    default:
      return insn.ends_run();
  }
}

// Whether the branch takes a packet to tell where it went.
bool needs_packet(InstructionClass kind) {
  return kind == InstructionClass::kConditional || kind == InstructionClass::kIndirectJump ||
         kind == InstructionClass::kIndirectCall || kind == InstructionClass::kReturn;
}

// Events that leave the flow where it is.
bool stays(RecordKind kind) {
  return kind == RecordKind::kMarker || kind == RecordKind::kCodeChange ||
         kind == RecordKind::kTransactionBegin || kind == RecordKind::kTransactionCommit;
}

class Synthesizer {
 public:
  static constexpr std::size_t kManyRecords = 1 << 20;

  // `epoch` is that of the first record.
  Synthesizer(const CodeImage& code, Epoch epoch, std::size_t records,
              const SynthesisOptions& options)
      : options_(options),
        epoch_(epoch),
        planner_(code, options.mode, std::min(records, kManyRecords)) {
    if (options.newest_code) changes_.emplace(code);
    planner_.set_epoch(options.newest_code ? code.newest() : epoch);
  }

  // `begin` is where the first of the records begins to run; 0 when it is not known.
  Result<Bytes> run(std::span<const BranchRecord> records, Address begin);

 private:
  void step(const BranchRecord& record);

  // Straight runs.
  const RunPlan& plan(const BranchRecord& record);
  const RunPlan* follow(const BranchRecord& record);
  void go_along(const RunPlan& plan, const BranchRecord& record);
  void show(const RunPlan& plan);
  void show_part(const RunPlan& plan);
  void show_branch(const RunPlan& plan, const BranchRecord& record);
  void guard(Address begin, Address last);

  // What ends them.
  void branch(const Instruction& insn, const BranchRecord& record);
  void give_back(const BranchRecord& record);
  void leave_by(const Instruction& insn, const BranchRecord& record);
  void asynchronous(const BranchRecord& record);
  void transaction(const BranchRecord& record);
  const RunPlan* follow_to_end(const BranchRecord& record);
  void end(const BranchRecord& record);
  void end_after(const Instruction& insn);
  void lose(const BranchRecord& record);
  void lose_after(const Instruction& insn);

  // The state of tracing.
  void start_tracing();
  void stop_tracing(Address next);
  void stop_here();
  void pause(Address next);
  void go_to(Address to);
  void sync();
  Result<void> check_size() const;

  const SynthesisOptions& options_;
  PacketWriter out_;
  Epoch epoch_;  // of the next record
  RunPlanner planner_;
  std::optional<CodeChanges> changes_;  // when only the newest code is seen
  RunPlan hidden_;
  ReturnMemory returns_;
  LoopGuard loops_;
  Address at_;         // executed next; 0: not known
  Address run_begin_;  // where the part of the run begins that no packet steers
  bool tracing_ = false;
  Address stopped_at_;     // while not tracing: where a decoder believes the flow stands
  bool lost_ = false;      // while not tracing: something is missing in between
  bool overflow_ = false;  // while not tracing: the last packet is an OVF
  bool in_transaction_ = false;
  ClockWriter clock_{out_, options_.timing, options_.clocks};
  std::size_t last_psb_ = 0;
};

Result<Bytes> Synthesizer::run(std::span<const BranchRecord> records, Address begin) {
  at_ = begin;
  // The first PSB tells it too: tools may not begin at one without.
  auto timed = std::ranges::find_if(records, [](const BranchRecord& r) { return r.time != 0; });
  if (timed != records.end()) clock_.begin(timed->time);
  std::uint64_t period = options_.psb_period_bytes != 0 ? options_.psb_period_bytes : ~0ull;
  sync();
  for (const BranchRecord& record : records) {
    step(record);
    if (out_.size_bytes() - last_psb_ >= period) sync();
    if (auto good = check_size(); !good) return fail(good.error());
  }
  if (tracing_) stop_here();
  if (auto good = check_size(); !good) return fail(good.error());
  return out_.take();
}

Result<void> Synthesizer::check_size() const {
  if (out_.size_bytes() <= options_.limit_bytes) return {};
  return fail(ErrorCode::kUsage, "cannot turn the records into Intel PT packets",
              "they unfold into more than " + std::to_string(options_.limit_bytes) + " bytes",
              "ask for fewer instructions");
}

void Synthesizer::step(const BranchRecord& record) {
  switch (record.kind) {
    case RecordKind::kEnable:
      if (tracing_) stop_here();
      clock_.tell(record.time);
      break;
    case RecordKind::kDisable:
      end(record);
      break;
    case RecordKind::kOverflow:
    case RecordKind::kGap:
      lose(record);
      break;
    default:
      if (const RunPlan* plan = follow(record); plan == nullptr)
        break;
      else if (record.is_async())
        asynchronous(record);
      else
        branch(plan->last, record);
      break;
  }
  at_ = record.to;
  if (record.kind != RecordKind::kCodeChange) return;
  ++epoch_.value;
  if (!options_.newest_code) planner_.set_epoch(epoch_);
}

// How the record's run can be shown.
const RunPlan& Synthesizer::plan(const BranchRecord& record) {
  const RunPlan& plan = planner_.plan(at_, record);
  if (!changes_ || !changes_->since(epoch_, plan.begin, plan.end())) return plan;
  hidden_ = plan;
  hidden_.show_nothing();
  if (changes_->since(epoch_, plan.from, plan.end())) hidden_.last = {};
  return hidden_;
}

// Brings a decoder to where the record's branch is executed, or was about to be. Nothing when the
// code does not lead there; then the break is sent already.
const RunPlan* Synthesizer::follow(const BranchRecord& record) {
  if (at_.is_null()) return nullptr;
  const RunPlan& plan = this->plan(record);
  if (!plan.arrives || !(record.is_async() || fits(plan.last, record))) {
    show_part(plan);
    show_branch(plan, record);
    return nullptr;
  }
  go_along(plan, record);
  return &plan;
}

void Synthesizer::go_along(const RunPlan& plan, const BranchRecord& record) {
  if (!tracing_) start_tracing();
  guard(plan.begin, plan.from);
  clock_.tell(record.time);
  show(plan);
}

void Synthesizer::show(const RunPlan& plan) {
  run_begin_ = plan.after_last_bit;
  if (plan.not_taken == 0) return;
  out_.not_taken(plan.not_taken);
  loops_.clear();
}

// Shows as much of a run as is sure.
void Synthesizer::show_part(const RunPlan& plan) {
  if (!tracing_ && plan.stop != plan.begin) start_tracing();
  if (tracing_) {
    guard(plan.begin, plan.stop);
    show(plan);
    stop_tracing(plan.stop);
  }
  lost_ = true;
}

// Shows the branch at the end of a run that is not known, if that much is sure.
void Synthesizer::show_branch(const RunPlan& plan, const BranchRecord& record) {
  bool is_sure = !record.is_async() && plan.last.size_bytes != 0 && record.insns != 0;
  if (!is_sure || !fits(plan.last, record)) return;
  at_ = plan.from;
  start_tracing();
  clock_.tell(record.time);
  run_begin_ = at_;
  branch(plan.last, record);
}

// Sends what a decoder needs to tell the coming visit of [begin, last] from an earlier one.
void Synthesizer::guard(Address begin, Address last) {
  if (loops_.empty() || (!loops_.full() && !loops_.overlaps(begin, last))) return;
  if (!loops_.passed(begin)) return pause(begin);
  // The jump that went there tells itself by its target, unless another one went there before.
  if (loops_.entered(begin)) pause(loops_.newest_branch());
  out_.tip_pgd(begin);
  tracing_ = false;
  at_ = begin;
  start_tracing();
}

void Synthesizer::branch(const Instruction& insn, const BranchRecord& record) {
  if (record.to.is_null()) return end_after(insn);
  switch (insn.kind) {
    case InstructionClass::kConditional:
      out_.tnt(record.to == insn.target);
      loops_.clear();
      break;
    case InstructionClass::kCall:
      if (insn.target != insn.next()) returns_.push(insn.next());
      [[fallthrough]];
    case InstructionClass::kJump:
      loops_.add(run_begin_, insn.address);
      break;
    case InstructionClass::kIndirectCall:
      returns_.push(insn.next());
      [[fallthrough]];
    case InstructionClass::kIndirectJump:
      go_to(record.to);
      break;
    case InstructionClass::kReturn:
      give_back(record);
      break;
    default:
      leave_by(insn, record);
      break;
  }
}

void Synthesizer::give_back(const BranchRecord& record) {
  bool matches = !returns_.empty() && returns_.top() == record.to;
  if (matches)
    returns_.pop();
  else
    returns_.clear();  // decoders differ in what a return elsewhere does to the other entries
  if (!matches || !options_.return_compression) return go_to(record.to);
  out_.tnt(true);
  loops_.clear();
}

// A far branch: a system call comes back behind itself, untraced in between.
void Synthesizer::leave_by(const Instruction& insn, const BranchRecord& record) {
  if (record.to != insn.next()) return go_to(record.to);
  out_.tip_pgd_suppressed();
  tracing_ = false;
  stopped_at_ = insn.next();
}

void Synthesizer::asynchronous(const BranchRecord& record) {
  if (stays(record.kind) && record.to != record.from) {
    lost_ = true;
    return stop_tracing(record.from);
  }
  switch (record.kind) {
    case RecordKind::kMarker:
      // Tells a decoder nothing; the run goes on.
      if (run_begin_ < record.from) loops_.add(run_begin_, record.from - 1);
      break;
    case RecordKind::kTransactionBegin:
    case RecordKind::kTransactionCommit:
    case RecordKind::kTransactionAbort:
      transaction(record);
      break;
    case RecordKind::kDiscontinuity:
      stop_tracing(record.from);
      break;
    default:
      if (record.from == record.to) return pause(record.from);
      out_.fup(record.from);
      go_to(record.to);
      break;
  }
}

void Synthesizer::transaction(const BranchRecord& record) {
  in_transaction_ = record.kind == RecordKind::kTransactionBegin;
  bool aborted = record.kind == RecordKind::kTransactionAbort;
  out_.mode_tsx(in_transaction_, aborted);
  out_.fup(record.from);
  if (aborted) go_to(record.to);
  loops_.clear();
}

// Like follow(), but any instruction may be the last. `from` is where the flow stands, or the last
// instruction it executed.
const RunPlan* Synthesizer::follow_to_end(const BranchRecord& record) {
  if (at_.is_null() || record.from.is_null()) {
    if (tracing_) stop_here();
    return nullptr;
  }
  const RunPlan& plan = this->plan(record);
  if (!plan.arrives) {
    show_part(plan);
    return nullptr;
  }
  go_along(plan, record);
  return &plan;
}

void Synthesizer::end(const BranchRecord& record) {
  const RunPlan* plan = follow_to_end(record);
  if (plan == nullptr) return;
  if (record.is_async())
    stop_tracing(plan->from);
  else
    end_after(plan->last);
}

// Tracing ends with an instruction; where it led to is not known. A branch that would need a packet
// to say so is left out: nothing is invented.
void Synthesizer::end_after(const Instruction& insn) {
  if (needs_packet(insn.kind)) return stop_tracing(insn.address);
  if (!insn.is_branch()) return stop_tracing(insn.next());
  if (insn.kind >= InstructionClass::kFarJump)
    out_.tip_pgd_suppressed();
  else
    out_.tip_pgd(insn.target);
  tracing_ = false;
  stopped_at_ = insn.next();
}

// What ran up to `from` is known, then something is missing.
void Synthesizer::lose(const BranchRecord& record) {
  bool overflows = record.kind == RecordKind::kOverflow;
  if (const RunPlan* plan = follow_to_end(record)) {
    bool open = !record.is_async() && needs_packet(plan->last.kind);
    overflows |= open;
    if (record.is_async())
      stop_tracing(plan->from);
    else if (open)
      lose_after(plan->last);
    else
      end_after(plan->last);
  }
  lost_ = true;
  if (!overflows) return;
  out_.flush();
  out_.ovf();
  overflow_ = true;
}

// Shows a branch of which nobody knows where it led: the overflow that follows hides what the
// packet says.
void Synthesizer::lose_after(const Instruction& insn) {
  if (insn.kind == InstructionClass::kConditional)
    out_.tnt(false);
  else
    out_.tip(insn.next());
  tracing_ = false;
  stopped_at_ = {};
}

void Synthesizer::start_tracing() {
  if (lost_ && !overflow_ && at_ == stopped_at_) {
    // Going on where it stopped would look as if nothing were missing.
    out_.flush();
    out_.ovf();
    overflow_ = true;
  }
  if (overflow_)
    out_.fup(at_);
  else
    out_.tip_pge(at_);
  tracing_ = true;
  lost_ = overflow_ = false;
  returns_.clear();
  loops_.clear();
}

void Synthesizer::stop_tracing(Address next) {
  out_.fup(next);
  out_.tip_pgd_suppressed();
  tracing_ = false;
  stopped_at_ = next;
}

void Synthesizer::stop_here() {
  guard(at_, at_);
  stop_tracing(at_);
}

void Synthesizer::pause(Address next) {
  stop_tracing(next);
  at_ = next;
  start_tracing();
}

// An address that a decoder cannot know by itself; none means that nothing more is known.
void Synthesizer::go_to(Address to) {
  loops_.clear();
  if (!to.is_null()) return out_.tip(to);
  out_.tip_pgd_suppressed();
  tracing_ = false;
  stopped_at_ = {};
}

// PSB+: from here on a decoder can begin without what came before.
void Synthesizer::sync() {
  bool pauses = tracing_ && options_.pause_at_psb;
  if (pauses)
    stop_here();
  else if (tracing_)
    guard(at_, at_);
  clock_.before_sync();
  out_.psb();
  last_psb_ = out_.size_bytes();
  clock_.sync();
  out_.mode_exec(options_.mode);
  if (in_transaction_) out_.mode_tsx(true, false);
  if (tracing_) out_.fup(at_);
  out_.psbend();
  returns_.clear();
  overflow_ = false;
  if (pauses) start_tracing();
}

}  // namespace

Result<Bytes> synthesize(std::span<const BranchRecord> records, const CodeImage& code,
                         Epoch first_epoch, const SynthesisOptions& options) {
  std::size_t first = first_of_newest(records, options.newest_instructions);
  Epoch epoch = first_epoch;
  // The older records are looked at only if they can make a difference.
  if (first_epoch < code.newest()) epoch = epoch_after(records.first(first), first_epoch);
  Address begin = first != 0 ? records[first - 1].to : Address{};
  records = records.subspan(first);
  return Synthesizer(code, epoch, records.size(), options).run(records, begin);
}

}  // namespace tailtrace::pt
