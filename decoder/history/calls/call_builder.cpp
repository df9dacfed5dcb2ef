#include "decoder/history/calls/call_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "decoder/code/stack_pointer.h"
#include "decoder/history/interruption.h"

namespace tailtrace {
namespace {

// To what was interrupted: sigreturn and the returns of a kernel.
bool comes_back(InstructionClass kind) {
  return kind == InstructionClass::kSystemCall || kind == InstructionClass::kSystemReturn ||
         kind == InstructionClass::kFarReturn;
}

}  // namespace

CallBuilder::CallBuilder(const History& history, Symbolizer& symbols, Range range)
    : history_(history),
      symbols_(symbols),
      range_(range),
      stacks_(calls_.segments_, calls_.functions_),
      suspended_(stacks_) {
  calls_.functions_.push_back(nullptr);
}

Result<CallHistory> CallBuilder::build() {
  HistoryRuns runs(history_, range_.first);
  HistoryRun run;
  while (range_.size() != 0 && runs.next_record(run) && run.first <= range_.last) {
    add_run(run, runs.code());
    if (full())
      return fail(ErrorCode::kUsage, "cannot list the calls of so long a history",
                  fmt::format("it has more than {} segments", CallHistory::kMaxSegments),
                  "ask for fewer of its newest instructions");
    if (stacks_.budget().spent())
      return fail(ErrorCode::kBadInput, "cannot follow the calls of this history",
                  "they return again and again to functions that did not call",
                  "ask for fewer of its newest instructions");
  }
  if (history_.is_abandoned())
    return fail(ErrorCode::kNegative, "the list of calls was given up", "it was interrupted",
                "ask for fewer of its newest instructions");
  calls_.end_ = range_.last + 1;
  calls_.gaps_ = gaps_.size();
  bridge_gaps(stacks_, gaps_);
  shift_levels();
  return std::move(calls_);
}

void CallBuilder::add_run(const HistoryRun& run, CodeReader& code) {
  code_ = &code;
  when_ = run.step.epoch;
  if (run.step.shown != 0) add_instructions(run, code);
  std::uint64_t gap = run.first + run.step.shown;
  if (run.step.has_gap && gap >= range_.first && gap <= range_.last) add_gap(gap);
  if (is_interruption(run.record->kind)) add_event(*run.record, run.step.epoch);
}

void CallBuilder::add_instructions(const HistoryRun& run, CodeReader& code) {
  std::uint64_t end = std::min(run.first + run.step.shown, range_.last + 1);
  bool whole = run.first >= range_.first && end == run.first + run.step.shown;
  const Function& function = symbols_.function_in(run.step.start, run.step.epoch);
  // A run inside one function has nothing to look at but its ends.
  if (whole && run.ends_with_branch() && run.record->from >= run.step.start &&
      run.record->from < function.end) {
    arrive(run.step.start, run.first, run.step.epoch);
    last_ = *code.at(run.record->from);
    stacks_.at(stacks_.newest()).last = last_.kind;
    run_ = run.step.start;
    return;
  }
  Address at = run.step.start;
  Address known_end;  // up to here nothing changes
  for (std::uint64_t item = run.first; item < end; ++item) {
    std::optional<Instruction> insn = code.at(at);
    assert(insn);  // this path was followed before
    at = insn->next();
    if (item < range_.first) continue;
    if (insn->address >= known_end) {
      arrive(insn->address, item, run.step.epoch);
      known_end = symbols_.function_in(insn->address, run.step.epoch).end;
    }
    last_ = *insn;
    stacks_.at(stacks_.newest()).last = insn->kind;
  }
  run_ = run.step.start;
}

void CallBuilder::add_gap(std::uint64_t item) {
  from_ = stacks_.newest();
  begin_segment(0, item);
  gaps_.push_back(stacks_.newest());
  event_.reset();
  interruptions_.clear();
  suspended_.clear();
  jumped_back_to_.clear();
}

void CallBuilder::add_event(const BranchRecord& record, Epoch when) {
  // A transaction that is aborted goes on where it began.
  if (record.kind == RecordKind::kTransactionAbort) return;
  const std::uint32_t newest = stacks_.newest();
  if (newest == 0 || stacks_.at(newest).is_gap()) return;
  if (interruptions_.size() == kMostInterruptions) interruptions_.erase(interruptions_.begin());
  const std::uint32_t function = index_of(symbols_.function_in(record.from, when));
  from_ = newest;
  go_back(record.from, function);
  interruptions_.push_back({record.from, function, from_, last_, run_, std::move(event_)});
  event_ = record;
}

// An instruction follows the last one: does it begin a segment, and of what kind?
void CallBuilder::arrive(Address address, std::uint64_t item, Epoch when) {
  const std::uint32_t function = index_of(symbols_.function_in(address, when));
  from_ = stacks_.newest();
  if (event_ && event_->to != address) event_.reset();
  if (from_ == 0 || stacks_.at(from_).is_gap()) {
    begin_unseen(function, address, item);
    return;
  }
  assert(!event_ || !interruptions_.empty());
  const std::uint32_t newest = from_;
  const bool goes_back = stacks_.switched(newest, function) && go_back(address, function);
  if (!event_ || !arrive_by_event(function, address, item))
    arrive_by_instruction(function, address, item);
  if (goes_back && stacks_.newest() == newest) begin_part(function, item, from_);
}

// Where a handler comes back to what it had interrupted, that goes on as if nothing had been.
// A handler may have it go on elsewhere in its function. A segment begins only where GDB begins
// one: where the name changes.
bool CallBuilder::go_back(Address address, std::uint32_t function) {
  // A system call that is itself interrupted, or made again behind that, comes from nowhere.
  const bool is_here = last_.next() == address || last_.address == address;
  const bool may =
      event_ ? event_->kind == RecordKind::kDiscontinuity : comes_back(last_.kind) && !is_here;
  if (!may) return false;
  // A handler that a longjmp left leaves its interruption behind.
  auto newest =
      std::find_if(interruptions_.rbegin(), interruptions_.rend(), [&](const Interruption& one) {
        return one.restorer == from_ && (one.at == address || !switched(one.function, function));
      });
  if (newest == interruptions_.rend())
    newest =
        std::find_if(interruptions_.rbegin(), interruptions_.rend(), [&](const Interruption& one) {
          return one.at == address && (!event_ || is_open(one.handler));
        });
  if (newest == interruptions_.rend()) return false;
  from_ = newest->from;
  last_ = newest->last;
  run_ = newest->run;
  event_ = std::move(newest->led_to);
  interruptions_.erase(std::prev(newest.base()), interruptions_.end());
  if (interruptions_.empty()) event_.reset();  // it is too long ago
  return true;
}

// What a signal or the like leads to is called by what it interrupts. False: it stays inside.
bool CallBuilder::arrive_by_event(std::uint32_t function, Address address, std::uint64_t item) {
  event_.reset();
  Interruption& interrupted = interruptions_.back();
  const bool leaves =
      calls_.functions_[function]->entry == address || switched(interrupted.function, function);
  // What was interrupted before, by a function of the same name, may have gone on in between.
  const bool is_newest = interrupted.from == stacks_.newest();
  if (!leaves || (is_newest && !stacks_.switched(stacks_.newest(), function))) return false;
  from_ = interrupted.from;
  last_ = interrupted.last;
  run_ = interrupted.run;
  std::uint32_t caller = 0;
  if (last_.kind == InstructionClass::kReturn)
    caller = stacks_.find_function(stacks_.at(from_).caller, interrupted.function);
  begin_call(function, item, caller != 0 ? caller : from_);
  interrupted.handler = stacks_.newest();
  return true;
}

void CallBuilder::arrive_by_instruction(std::uint32_t function, Address address,
                                        std::uint64_t item) {
  if (last_.kind == InstructionClass::kReturn) {
    const Function& from = *calls_.functions_[stacks_.at(from_).function];
    if (from.plain_name() == "_dl_runtime_resolve") return begin_call(function, item, from_, true);
    return begin_return(function, address, item);
  }
  if (is_near_call(last_.kind) && last_.next() != address) {
    suspended_.open(from_, last_.next());
    if (returns_twice_[function]) note_way_back();
    if (goes_on_with_more_stack(function, address))
      return begin_part(function, item, stacks_.at(from_).caller);
    const bool is_inside = calls_into_itself(function, address);
    begin_call(function, item, from_);
    if (!is_inside) return;
    is_inside_twice_ = called_inside_ == from_;
    called_inside_ = stacks_.newest();
    return;
  }
  if (is_near_jump(last_.kind)) return arrive_by_jump(function, address, item);
  if (leaves_older_handler(address)) return begin_older(function, address, item);
  if (stacks_.switched(from_, function)) begin_switch(function, item);
}

void CallBuilder::arrive_by_jump(std::uint32_t function, Address address, std::uint64_t item) {
  const Address entry = calls_.functions_[function]->entry;
  const bool may_leave = last_.kind == InstructionClass::kIndirectJump;
  if (begins_at(function, address)) {
    if (may_leave && left_stack()) return begin_stack(function, address, item);
    if (begins_again_with_more_stack(function)) return begin_part(function, item, from_);
    return begin_call(function, item, from_, true);
  }
  const bool switches = stacks_.switched(from_, function);
  const Function& from = *calls_.functions_[stacks_.at(from_).function];
  // Its linkage table only jumps on.
  if (from.plain_name().starts_with("_Unwind_") && (!switches || may_leave) &&
      find_function(stacks_.at(from_).caller, function, address) != 0)
    return switches ? begin_landing(function, address, item)
                    : begin_return(function, address, item);
  if (!switches) return entry.is_null() && may_leave ? land_inside(address) : void();
  if (stacks_.is_part_of(from_, function)) return begin_part(function, item, from_);
  std::uint32_t part = 0;
  if (!entry.is_null()) part = stacks_.find_function(stacks_.at(from_).caller, function);
  if (may_leave) part = call_that_goes_on(part, function, address);
  if (may_leave && part == 0) part = call_that_is_jumped_back_to(address);
  if (part != 0 && returns_twice_[function] && !stacks_.is_part_of(part, function))
    return begin_call(function, item, part);
  if (part != 0) return begin_part(function, item, part);
  if (may_leave && left_stack()) return begin_stack(function, address, item);
  if (entry.is_null()) return begin_call(function, item, from_, true);
  begin_switch(function, item);
}

std::uint32_t CallBuilder::begin_segment(std::uint32_t function, std::uint64_t item) {
  KeptSegment segment;
  segment.first = item;
  segment.function = function;
  if (from_ != 0) segment.level = stacks_.at(from_).level;
  calls_.segments_.push_back(segment);
  return stacks_.newest();
}

// What led there was not seen: the call began before, unless it begins right here.
std::uint32_t CallBuilder::begin_unseen(std::uint32_t function, Address address,
                                        std::uint64_t item) {
  std::uint32_t number = begin_segment(function, item);
  stacks_.at(number).begun_before = calls_.functions_[function]->entry != address;
  return number;
}

void CallBuilder::begin_call(std::uint32_t function, std::uint64_t item, std::uint32_t caller,
                             bool tail_called) {
  KeptSegment& segment = stacks_.at(begin_segment(function, item));
  segment.caller = caller;
  segment.tail_called = tail_called;
  segment.level = stacks_.at(caller).level + 1;
}

// Nobody knows why it is another function now, unless it is a part of the same; the stack stays as
// it was.
void CallBuilder::begin_switch(std::uint32_t function, std::uint64_t item) {
  if (stacks_.switched(from_, function) && stacks_.is_part_of(from_, function))
    return begin_part(function, item, from_);
  KeptSegment before = stacks_.at(from_);
  KeptSegment& segment = stacks_.at(begin_segment(function, item));
  segment.caller = before.caller;
  segment.tail_called = before.tail_called;
}

void CallBuilder::begin_part(std::uint32_t function, std::uint64_t item, std::uint32_t before) {
  make_part(begin_segment(function, item), before);
}

void CallBuilder::make_part(std::uint32_t number, std::uint32_t before) {
  KeptSegment& segment = stacks_.at(number);
  KeptSegment& earlier = stacks_.at(before);
  earlier.later = number;
  suspended_.close(before);
  segment.earlier = before;
  segment.level = earlier.level;
  segment.caller = earlier.caller;
  segment.tail_called = earlier.tail_called;
}

void CallBuilder::begin_return(std::uint32_t function, Address address, std::uint64_t item) {
  // From its caller on: a recursive function does not return to itself.
  const std::uint32_t own = stacks_.find_function(stacks_.at(from_).caller, function);
  if (std::uint32_t caller = call_that_goes_on(own, function, address))
    return begin_part(function, item, caller);
  if (std::uint32_t handler = handler_that_returns()) {
    from_ = handler;
    begin_switch(function, item);
    interruptions_.back().restorer = stacks_.newest();
    return;
  }
  begin_return_to_nobody(function, address, item);
}

// `own` is the call of the function that this stack has. One of another stack, or further out, goes
// on where it fits and that does not. 0: none is known.
std::uint32_t CallBuilder::call_that_goes_on(std::uint32_t own, std::uint32_t function,
                                             Address address) {
  if (own != 0 && suspended_.goes_on_at(own, address)) return own;
  const std::uint32_t other = suspended_.newest_at(address, function);
  if (other != 0 && (left_stack() || stacks_.find_call(stacks_.at(from_).caller) != 0)) {
    suspended_.move(from_, other);
    return other;
  }
  // Nothing returns to a function's begin, and those without a name are not the same.
  const bool is_named = calls_.functions_[function]->known() && !begins_at(function, address);
  if (own == 0 || (!is_named && suspended_.knows_of(own))) return 0;
  if (begins_without_name(function, address)) return 0;
  suspended_.unwind(stacks_.at(from_).caller, own);
  return own;
}

// Whether the last instruction branched behind one that goes over to another stack.
bool CallBuilder::left_stack() {
  auto [left, is_new] = left_stack_.try_emplace(last_.address, false);
  if (!is_new) return left->second;
  std::optional<Instruction> insn = code_->at(run_);
  for (; insn && insn->address < last_.address; insn = code_->at(insn->next()))
    left->second = left->second || loads_stack_pointer(code_->bytes_of(*insn));
  return left->second;
}

// Whether a handler, if one began, is on the stack.
bool CallBuilder::is_open(std::uint32_t handler) {
  std::uint32_t part = from_;
  while (part > handler && handler != 0 && stacks_.budget().take())
    part = stacks_.at(part).earlier != 0 ? stacks_.at(part).earlier : stacks_.at(part).caller;
  return handler == 0 || part == handler;
}

// gcc's `__morestack` calls the function that had called it, behind where it returns to.
bool CallBuilder::goes_on_with_more_stack(std::uint32_t function, Address address) {
  const std::uint32_t caller = stacks_.at(from_).caller;
  return caller != 0 && is_called(from_, "__morestack") && !begins_at(function, address) &&
         stacks_.is_part_of(caller, function);
}

// Go's functions do so whose stack was too small.
bool CallBuilder::begins_again_with_more_stack(std::uint32_t function) {
  const std::uint32_t earlier = stacks_.at(from_).earlier;
  return earlier != 0 && earlier < from_ && is_called(earlier + 1, "runtime.morestack") &&
         !stacks_.switched(from_, function);
}

// A system call that goes on elsewhere, unless in the kernel, is the one that ends a handler. That
// of one which began before the record is known of no interruption.
bool CallBuilder::leaves_older_handler(Address address) {
  constexpr std::uint64_t kKernel = 1ull << 63;
  return last_.kind == InstructionClass::kSystemCall && last_.next() != address &&
         last_.address != address && ((address.value ^ last_.address.value) & kKernel) == 0 &&
         stacks_.at(from_).caller == 0;
}

// By a name that begins so.
bool CallBuilder::is_called(std::uint32_t segment, std::string_view name) {
  const Function* function = calls_.functions_[stacks_.at(segment).function];
  return function != nullptr && function->plain_name().starts_with(name);
}

// To the code behind it, which nobody called. 0: it is no handler that returns.
std::uint32_t CallBuilder::handler_that_returns() {
  std::uint32_t part = from_;
  while (part != 0 && !interruptions_.empty() && stacks_.budget().take()) {
    const KeptSegment& of = stacks_.at(part);
    auto newest = std::find_if(interruptions_.rbegin(), interruptions_.rend(),
                               [&](const Interruption& one) { return one.handler == part; });
    if (newest != interruptions_.rend()) {
      interruptions_.erase(newest.base(), interruptions_.end());
      return part;
    }
    if (of.earlier == 0 && !of.tail_called) return 0;
    part = of.earlier != 0 ? of.earlier : of.caller;
  }
  return 0;
}

// No caller of that name was recorded.
void CallBuilder::begin_return_to_nobody(std::uint32_t function, Address address,
                                         std::uint64_t item) {
  const std::uint32_t from = from_;
  if (left_stack()) return begin_stack(function, address, item);
  if (const std::uint32_t call = stacks_.find_call(stacks_.at(from).caller)) {
    // The code behind a call may have another name.
    if (suspended_.goes_on_at(call, address)) {
      suspended_.close(call);
      from_ = call;
      return begin_switch(function, item);
    }
    // That should have been returned to. An address may be put on the stack to jump there.
    if (calls_.functions_[function]->entry == address || begins_without_name(function, address)) {
      if (from == std::exchange(called_inside_, 0)) return begin_call_by_retpoline(function, item);
      return begin_call(function, item, from, true);
    }
    return begin_stack(function, address, item);
  }
  begin_older(function, address, item);
}

// Behind its begin. Of what has no name the tables for unwinding tell, where it may be a retpoline.
bool CallBuilder::calls_into_itself(std::uint32_t function, Address address) {
  constexpr std::uint64_t kRetpoline_bytes = 32;
  if (calls_.functions_[function]->known())
    return !begins_at(function, address) && !stacks_.switched(from_, function);
  const Address next = last_.next();
  if (std::max(address, next) - std::min(address, next) > kRetpoline_bytes) return false;
  const std::optional<Address> begin = symbols_.fde_begin(address, when_);
  return begin && begin != address && begin == symbols_.fde_begin(last_.address, when_);
}

// A retpoline calls into its own middle, and overwrites where that would return to. What has it
// inlined calls it likewise, for where the function is to return to.
void CallBuilder::begin_call_by_retpoline(std::uint32_t function, std::uint64_t item) {
  const std::uint32_t retpoline = stacks_.at(from_).caller;
  const std::uint32_t caller = stacks_.at(retpoline).caller;
  const Address behind = is_inside_twice_ ? suspended_.goes_on(caller) : Address{};
  const bool is_inlined = !behind.is_null();
  if (is_inlined) make_part(retpoline, caller);
  make_part(from_, retpoline);
  if (is_inlined) suspended_.open(from_, behind);
  begin_call(function, item, from_, !is_inlined);
}

// What has no name and is not behind a call must begin there.
bool CallBuilder::begins_without_name(std::uint32_t function, Address address) {
  if (calls_.functions_[function]->known()) return false;
  constexpr std::uint64_t kShortest_bytes = 2, kLongest_bytes = 7;
  for (std::uint64_t size = kShortest_bytes; size <= kLongest_bytes; ++size) {
    const std::optional<Instruction> insn = code_->at({address.value - size});
    if (insn && is_near_call(insn->kind) && insn->next() == address) return false;
  }
  return true;
}

// The call is older than the record: what lay outermost was called from here.
void CallBuilder::begin_older(std::uint32_t function, Address address, std::uint64_t item) {
  const std::uint32_t top = stacks_.find_top(from_);
  std::uint32_t number = begin_unseen(function, address, item);
  stacks_.at(number).level = stacks_.at(top).level - 1;
  stacks_.set_caller(top, number, false);
}

// Another one altogether.
void CallBuilder::begin_stack(std::uint32_t function, Address address, std::uint64_t item) {
  const std::int32_t level = stacks_.at(stacks_.find_top(from_)).level;
  stacks_.at(begin_unseen(function, address, item)).level = level;
}

// What is put apart of a function is jumped to only.
bool CallBuilder::begins_at(std::uint32_t function, Address address) const {
  const Function& of = *calls_.functions_[function];
  return of.entry == address && !is_put_apart(of);
}

bool CallBuilder::switched(std::uint32_t from, std::uint32_t to) const {
  return from != to && function_switched(*calls_.functions_[from], *calls_.functions_[to]);
}

std::uint32_t CallBuilder::index_of(const Function& function) {
  auto [it, added] =
      indices_.try_emplace(&function, static_cast<std::uint32_t>(calls_.functions_.size()));
  if (added) {
    calls_.functions_.push_back(&function);
    returns_twice_.push_back(function.plain_name().find("setjmp") != std::string_view::npos);
  }
  return it->second;
}

void CallBuilder::shift_levels() {
  std::int32_t lowest = 0;
  for (std::size_t i = 0; i < calls_.segments_.size(); ++i)
    lowest = i == 0 ? calls_.segments_[0].level : std::min(lowest, calls_.segments_[i].level);
  for (KeptSegment& segment : calls_.segments_) segment.level -= lowest;
}

}  // namespace tailtrace
