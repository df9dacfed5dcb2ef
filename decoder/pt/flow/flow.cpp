#include "decoder/pt/flow/flow.h"

#include <algorithm>
#include <utility>

#include "decoder/pt/far.h"
#include "decoder/pt/fast/fast_flow.h"

namespace tailtrace::pt {
namespace {

// Where code is expected to go on when tracing is switched off by an instruction.
Address expected_after(const Instruction& insn) {
  switch (insn.kind) {
    case InstructionClass::kJump:
    case InstructionClass::kCall:
      return insn.target;
    case InstructionClass::kOther:
    case InstructionClass::kRepString:
    case InstructionClass::kMovCr3:
    case InstructionClass::kPtwrite:
    case InstructionClass::kIndirectCall:
    case InstructionClass::kFarCall:
    case InstructionClass::kSystemCall:
    case InstructionClass::kVmCall:
      return insn.next();
    default:
      return {};
  }
}

constexpr bool is_direct(InstructionClass kind) {
  return kind == InstructionClass::kJump || kind == InstructionClass::kCall;
}

}  // namespace

FlowWalker::FlowWalker(ByteSpan trace, const CodeImage& code, const DecoderConfig& config,
                       Sink& sink)
    : code_(code),
      config_(config),
      sink_(sink),
      trace_(trace),
      items_(trace, config),
      run_(kMaxRun) {}

FlowWalker::FlowWalker(ByteSpan trace, const CodeImage& code, const DecoderConfig& config,
                       PathSink& sink, FastFlow& fast)
    : FlowWalker(trace, code, config, static_cast<Sink&>(sink)) {
  paths_ = &sink;
  fast_ = &fast;
}

void FlowWalker::run(std::size_t begin, std::size_t end) {
  end_ = end;
  items_.set_boundary(end < trace_.size() ? end : ~std::size_t{0});
  std::optional<std::size_t> psb = find_psb(trace_, begin);
  started_at_.reset();
  stopped_at_.reset();
  if (!psb || *psb >= end) return;
  Next next = walk(*psb);
  started_at_ = began_at_;
  while (next == Next::kResync) {
    forget_reading_on();
    const std::size_t from = std::max(consumed_offset_, sync_offset_ + kPsbSize_bytes);
    if (psb && *psb < from) psb = find_psb(trace_, from);
    const std::size_t limit = std::min(psb.value_or(end), end);
    const bool goes_on = skip_to_address(limit);
    const std::size_t resync = goes_on ? items_.peek().offset_bytes : limit;
    gap_.offset_bytes = std::min<std::uint64_t>(gap_.offset_bytes, resync);
    gap_.size_bytes = resync - gap_.offset_bytes;
    sink_.gap(gap_);
    if (!goes_on && limit == end) return;
    next = goes_on ? go_on() : walk(*psb);
  }
}

FlowWalker::Next FlowWalker::walk(std::size_t psb) {
  sync_offset_ = consumed_offset_ = psb;
  held_.reset();
  outcome_count_ = 0;
  clear_returns();
  in_transaction_ = mode_known_ = anchored_ = false;
  items_.start(psb);
  enabled_ = items_.start_ip().has_value();
  began_at_ = items_.start_ip();
  ip_ = began_at_.value_or(Address{});
  time_ = items_.peek().time;
  time_exact_ = false;
  // Where an overflow cuts PSB+, the mode that was told last goes on.
  use_mode(items_.started_cut() ? mode_ : CodeMode::k64);
  epoch_ = config_.first_epoch;
  next_change_ = 0;
  use_changes(psb, time_);
  straight_on(ip_);
  executed_ = false;
  return go_on();
}

FlowWalker::Next FlowWalker::go_on() {
  Next next = deliver_events(nullptr);
  while (next == Next::kGoOn) next = step();
  flush();
  return next;
}

void FlowWalker::push_return(Address to) {
  if (fast_ != nullptr)
    fast_->push_return(to.value, mode_);
  else
    returns_.push(to.value);
}

bool FlowWalker::pop_return(std::uint64_t& to) {
  return fast_ != nullptr ? fast_->pop_return(to) : returns_.pop(to);
}

void FlowWalker::clear_returns() {
  returns_.clear();
  if (fast_ != nullptr) fast_->clear_returns();
}

// For instructions of now, one at least.
inline Instruction* FlowWalker::room_in_run() {
  if (run_size_ == kMaxRun || run_state_.time != time_) flush();
  if (run_size_ == 0) run_state_ = {mode_, in_transaction_, time_exact_, time_};
  return run_.data() + run_size_;
}

void FlowWalker::emit(const Instruction& insn) {
  *room_in_run() = insn;
  ++run_size_;
}

// One instruction and what belongs to it.
FlowWalker::Next FlowWalker::step() {
  if (fast_ != nullptr && straight_ == 0 && !fast_stuck_) {
    if (try_fast()) return deliver_events(nullptr);
  }
  if (enabled_ && is_quiet()) return step_quietly();
  if (!held_ && outcome_count_ == 0 && ends_stream(items_.peek().kind)) {
    const Item& item = items_.peek();
    if (item.kind == ItemKind::kEnd && !(item.cut && enabled_)) {
      flush();
      if (enabled_) {
        Event event;
        event.kind = EventKind::kEndOfTrace;
        event.ip = ip_;
        sink_.event(event);
      }
      return Next::kDone;
    }
    if (item.kind == ItemKind::kBoundary) {
      if (!enabled_) return Next::kDone;
      if (item.suppressed) return error(DecodeError::kBadStatusUpdate);
      if (item.payload == ip_.value) {
        stopped_at_ = ip_;
        return Next::kDone;
      }
    }
  }
  if (!held_ && outcome_count_ == 0 && items_.peek().kind == ItemKind::kError) {
    // What cannot be read may have led anywhere, unless it belongs to the next branch.
    if (!enabled_ || !items_.peek().cut) return missing();
  }
  if (!enabled_) return error(DecodeError::kNoEnable);
  std::optional<Instruction> insn = reader_->at(ip_);
  if (!insn) return no_instruction();
  emit(*insn);
  executed_ = true;
  bound_paging_ = bound_vmcs_ = bound_ptwrite_ = bound_flow_ = false;
  hold_event();
  if (held_) {
    Next next = deliver_bound_events(*insn);
    if (next != Next::kGoOn) return next;
    if (!enabled_) return deliver_events(nullptr);
  }
  ++since_anchor_;
  const Next next = follow(*insn);
  if (next != Next::kGoOn) return next;
  return deliver_events(&*insn);
}

// Whether nothing can happen before the next branch. Where that leads is fetched ahead.
bool FlowWalker::is_quiet() {
  if (held_) return false;
  if (outcome_count_ != 0) return true;
  const Item& next = items_.peek();
  if (next.kind == ItemKind::kTip) reader_->fetch_ahead({next.payload});
  return next.kind == ItemKind::kTnt || next.kind == ItemKind::kTip;
}

// As step(), as long as nothing can happen between two branches, without asking for events on the
// way. REQUIRES: is_quiet().
FlowWalker::Next FlowWalker::step_quietly() {
  for (;;) {
    const Decoded last = run_to_branch();
    if (!last) return no_instruction();
    const Instruction branch = last.at(ip_);
    const Next next = follow(branch);
    if (next != Next::kGoOn) return next;
    if (!is_direct(branch.kind)) {
      if (!is_quiet()) return deliver_events(&branch);
      if (fast_ != nullptr && !fast_->rests()) return next;
    }
  }
}

// Emits what is executed up to the next instruction that may branch, or is one too many without a
// packet; that one, at ip_, is not followed yet. Nothing: there is no instruction at ip_.
inline Decoded FlowWalker::run_to_branch() {
  for (Address at = ip_;;) {
    Instruction* out = room_in_run();
    const std::uint32_t room = std::min(kMaxRun - run_size_, kMaxStraight - straight_ + 1);
    std::uint32_t count = 0;
    Decoded insn;
    bool goes_on;
    do {
      ip_ = at;
      insn = reader_->find(at);
      if (!insn) break;
      insn.put(at, *out++);
      ++count;
      at = at + insn.size_bytes;
      goes_on = !may_branch(insn.kind);
    } while (goes_on && count != room);
    run_size_ += count;
    since_anchor_ += count;
    straight_ += count;
    if (!insn) return insn;
    if (!goes_on || straight_ > kMaxStraight) {
      --straight_;
      return insn;
    }
  }
}

FlowWalker::Next FlowWalker::follow(const Instruction& insn) {
  proceeding_ = executed_ = true;
  const Next next = proceed(insn);
  proceeding_ = executed_ = false;
  return next;
}

FlowWalker::Next FlowWalker::no_instruction() {
  if (!knows(mode_)) return error(DecodeError::kNarrowCode);
  // Addresses of 32-bit code have no more bits.
  constexpr std::uint64_t kLast32 = 0xffffffff;
  if (mode_ == CodeMode::k32 && ip_.value > kLast32) {
    ip_.value &= kLast32;
    return deliver_events(nullptr);
  }
  return error(reader_->known(ip_) ? DecodeError::kBadInstruction : DecodeError::kNoCode);
}

FlowWalker::Next FlowWalker::deliver_bound_events(const Instruction& insn) {
  while (held_ && is_bound(insn)) {
    if (held_->kind == EventKind::kDisabled) {
      ip_ = expected_after(insn);
      executed_ = false;
    }
    Next next = deliver();
    // When it comes round to the instruction, that may have another event.
    loop_mark_ = insn.next();
    if (next != Next::kGoOn || !enabled_ || overflow_is_next()) return next;
    hold_event();
  }
  return Next::kGoOn;
}

FlowWalker::Next FlowWalker::deliver_events(const Instruction* behind) {
  next_ = Next::kGoOn;
  for (;;) {
    hold_event();
    if (!held_) return Next::kGoOn;
    bool due = is_due(behind);
    if (next_ != Next::kGoOn) return next_;
    if (!due) return Next::kGoOn;
    Next next = deliver();
    if (next != Next::kGoOn) return next;
    behind = nullptr;
  }
}

FlowWalker::Next FlowWalker::straight_on(Address to) {
  ip_ = to;
  straight_ = 0;
  fast_stuck_ = false;
  loop_mark_ = to;
  loop_mark_in_ = 1;
  return Next::kGoOn;
}

// A packet said where the branch went; counts of instructions begin there.
FlowWalker::Next FlowWalker::told(Address to) {
  anchor();
  return straight_on(to);
}

inline FlowWalker::Next FlowWalker::proceed(const Instruction& insn) {
  if (++straight_ > kMaxStraight) return error(DecodeError::kEndlessLoop);
  if (insn.kind != InstructionClass::kConditional) return proceed_without_condition(insn);
  switch (take_outcome()) {
    case Outcome::kTaken:
      return told(insn.target);
    case Outcome::kNotTaken:
      return told(insn.next());
    case Outcome::kNone:
      return missing();
  }
  return missing();
}

FlowWalker::Next FlowWalker::proceed_without_condition(const Instruction& insn) {
  switch (insn.kind) {
    case InstructionClass::kOther:
    case InstructionClass::kRepString:
    case InstructionClass::kMovCr3:
    case InstructionClass::kPtwrite:
      ip_ = insn.next();
      return Next::kGoOn;
    case InstructionClass::kCall:
      // A call of the next instruction only reads the instruction pointer; it is not counted on to
      // return (SDM, "RET compression").
      if (insn.target != insn.next()) push_return(insn.next());
      [[fallthrough]];
    case InstructionClass::kJump:
      ip_ = insn.target;
      executed_ = false;
      if (ip_ == loop_mark_ && !counts_to_trigger()) return error(DecodeError::kEndlessLoop);
      if (--loop_mark_in_ == 0) {
        // Brent: the mark moves at distances that double, so it comes to lie in any loop.
        loop_mark_ = ip_;
        loop_mark_in_ = straight_ + 1;
      }
      return Next::kGoOn;
    case InstructionClass::kReturn:
      switch (take_outcome()) {
        case Outcome::kTaken: {
          std::uint64_t to = 0;
          if (!pop_return(to)) return error(DecodeError::kReturnStackEmpty);
          return told({to});
        }
        case Outcome::kNotTaken:
          return error(DecodeError::kBadReturn);
        case Outcome::kNone: {
          // The processor compares with the newest entry and drops it whether or not it fits.
          std::uint64_t predicted = 0;
          pop_return(predicted);
          return take_target();
        }
      }
      return missing();
    case InstructionClass::kIndirectCall:
      push_return(insn.next());
      return take_target();
    default:
      return take_target();
  }
}

// --- Outcomes and targets --------------------------------------------------------------------

inline void FlowWalker::consumed(const Item& item) {
  if (item.time != time_ || item.time_exact != run_state_.time_exact) turn_to(item);
  time_exact_ = item.time_exact;
  passed(item);
}

// The branch that needed the item has its time, what ran before it the time before.
[[gnu::noinline]] void FlowWalker::turn_to(const Item& item) {
  const std::uint64_t time = not_before(time_, item.time);
  const bool news = time != time_ || item.time_exact != run_state_.time_exact;
  if (proceeding_ && run_size_ != 0 && news) {
    const Instruction branch = run_[--run_size_];
    flush();
    run_state_ = {mode_, in_transaction_, item.time_exact, time};
    run_[run_size_++] = branch;
  }
  time_ = time;
}

// False: the next item is none of outcomes.
bool FlowWalker::read_outcomes() {
  const Item& item = items_.peek();
  if (item.kind != ItemKind::kTnt) return false;
  outcomes_ = item.payload;
  outcome_count_ = item.bits;
  consumed(item);
  items_.take();
  return true;
}

inline FlowWalker::Outcome FlowWalker::take_outcome() {
  while (outcome_count_ == 0)
    if (!read_outcomes()) return Outcome::kNone;
  --outcome_count_;
  return (outcomes_ >> outcome_count_ & 1) != 0 ? Outcome::kTaken : Outcome::kNotTaken;
}

FlowWalker::Next FlowWalker::take_target() {
  // The TIP may be deferred: outcomes of later branches came first.
  while (outcome_count_ == 0 && read_outcomes()) {
  }
  const Item& item = items_.peek();
  if (item.kind != ItemKind::kTip) return missing();
  consumed(item);
  if (item.suppressed) return error(DecodeError::kNoIp);
  Address to{item.payload};
  items_.take();
  return told(to);
}

bool FlowWalker::overflow_is_next() {
  const Item& item = items_.peek();
  return item.kind == ItemKind::kEvent && item.event.kind == EventKind::kOverflow;
}

// The code needs an outcome or a target, and the next item is neither.
FlowWalker::Next FlowWalker::missing() {
  if (!held_ && overflow_is_next()) {
    // It was lost behind a PIP or outcomes of later branches: nobody knows where the branch led.
    outcome_count_ = 0;
    return straight_on({});
  }
  const Item& item = items_.peek();
  switch (item.kind) {
    case ItemKind::kEnd:
      // A buffer may end there, too. But the address of an event was never reached.
      return held_ ? error(DecodeError::kEventIgnored) : finish();
    case ItemKind::kError:
      return error(item.error);
    default:
      return error(DecodeError::kBadQuery);
  }
}

FlowWalker::Next FlowWalker::finish() {
  flush();
  return Next::kDone;
}

FlowWalker::Next FlowWalker::error(DecodeError error) {
  flush();
  gap_ = {error, ip_, items_.peek().offset_bytes, 0, executed_};
  return Next::kResync;
}

// --- Output ----------------------------------------------------------------------------------

void FlowWalker::flush() {
  if (run_size_ != 0) sink_.instructions({run_.data(), run_size_}, run_state_);
  run_size_ = 0;
}

// --- Code ------------------------------------------------------------------------------------

void FlowWalker::use_mode(CodeMode mode) {
  if (mode != mode_) flush();
  mode_ = mode;
  if (fast_ != nullptr && knows(mode_)) {
    reader_ = &fast_->reader(mode);
  } else {
    static const CodeImage kNone;
    std::optional<CodeReader>& reader = readers_[static_cast<std::size_t>(mode)];
    if (!reader) reader.emplace(knows(mode_) ? code_ : kNone, mode);
    reader_ = &*reader;
  }
  reader_->set_epoch(epoch_);
}

void FlowWalker::use_changes(std::uint64_t offset, std::uint64_t time) {
  const auto& changes = config_.code_changes;
  while (next_change_ < changes.size() && changes[next_change_].offset_bytes <= offset &&
         changes[next_change_].time <= time)
    epoch_ = changes[next_change_++].epoch;
  reader_->set_epoch(epoch_);
  if (fast_ != nullptr) fast_->set_epoch(epoch_);
}

}  // namespace tailtrace::pt
