#include "decoder/history/queries/arrivals.h"

#include <algorithm>

#include "decoder/history/interruption.h"
#include "decoder/history/queries/function_graphs.h"

namespace tailtrace {
namespace {

constexpr int kMaxUnwinderLevels = 8;  // calls between an unwinder and its last jump

bool is_system_call(InstructionClass kind) {
  return kind == InstructionClass::kSystemCall || kind == InstructionClass::kSystemReturn;
}

}  // namespace

Arrival Arrivals::of(const CallSegment& segment) {
  return arrive(segment, first_address(segment), event_before(segment));
}

std::optional<Arrival> Arrivals::of_stop(const CallSegment& newest, Address stop,
                                         const Function& function) {
  if (newest.function == nullptr) return std::nullopt;
  CallSegment segment;
  segment.number = newest.number + 1;
  segment.function = &function;
  cursor_.seek(newest.items.last);
  const HistoryItem& last = cursor_.item();
  const Address next = last.instruction.next();
  const Address to = last.branch != nullptr ? last.branch->to : next;
  const auto event = event_at_end(last.record, stop);
  if (!event && to != stop) return std::nullopt;
  const InstructionClass kind = last.instruction.kind;
  if ((is_near_call(kind) && to != next) || (is_near_jump(kind) && to == function.entry))
    segment.caller = newest.number;
  return arrive(segment, stop, event);
}

// Of the records from the one that ends the newest run on.
std::optional<BranchRecord> Arrivals::event_at_end(Position newest, Address stop) const {
  for (;; ++newest.value) {
    std::optional<BranchRecord> record = history_.record(newest);
    if (!record || (is_interruption(record->kind) && record->to == stop)) return record;
  }
}

Arrival Arrivals::arrive(const CallSegment& segment, Address at,
                         const std::optional<BranchRecord>& event) {
  using How = Arrival::How;
  const std::uint64_t before = segment.number - 1;
  if (before == 0) return {How::kBegin, at};
  if (calls_.at(before).function == nullptr) return {How::kGap, at, before};
  if (event) return {How::kEvent, at, before, 0, event};
  if (std::uint64_t call = call_returned_from(segment, at)) return {How::kWentOn, at, call};
  const InstructionClass kind = last_instruction(calls_.at(before)).kind;
  if (is_system_call(kind))
    if (std::uint64_t interrupted = resumed_by_handler(segment, at))
      return {How::kWentOn, at, interrupted};
  if (std::uint64_t unwinder = unwinder_of(segment)) return {How::kUnwound, at, before, unwinder};
  if (kind == InstructionClass::kReturn)
    if (std::uint64_t callee = outermost_callee(segment.number))
      return {How::kCallee, at, before, callee};
  return {is_inside(segment, calls_.at(before)) ? How::kWentOn : How::kBranch, at, before};
}

// Corrupt records may describe parts in a circle: never a later one.
std::uint64_t Arrivals::first_part(std::uint64_t number) const {
  return std::min(calls_.first_part(number), number);
}

Address Arrivals::first_address(const CallSegment& segment) {
  cursor_.seek(segment.items.first);
  return cursor_.item().instruction.address;
}

const Instruction& Arrivals::last_instruction(const CallSegment& segment) {
  cursor_.seek(segment.items.last);
  return cursor_.item().instruction;
}

std::optional<BranchRecord> Arrivals::event_before(const CallSegment& segment) {
  if (segment.earlier != 0) return std::nullopt;
  cursor_.seek(segment.items.first);
  return interruption_before(history_, cursor_.item());
}

bool Arrivals::ends_with_call_before(std::uint64_t number, Address at) {
  const CallSegment segment = calls_.at(number);
  if (segment.function == nullptr) return false;
  const Instruction& last = last_instruction(segment);
  return is_near_call(last.kind) && last.next() == at;
}

// The segment that ends with the call which was returned from; 0: none.
std::uint64_t Arrivals::call_returned_from(const CallSegment& segment, Address at) {
  if (segment.earlier != 0 && segment.earlier < segment.number &&
      ends_with_call_before(segment.earlier, at))
    return segment.earlier;
  // The code behind a call may have another name than the code that calls.
  const std::uint64_t first = first_part(segment.number - 1);
  if (first > 1 && ends_with_call_before(first - 1, at)) return first - 1;
  const bool returned =
      last_instruction(calls_.at(segment.number - 1)).kind == InstructionClass::kReturn;
  return returned ? newest_call_before(segment, at) : 0;
}

// Where the stack of calls was lost, as behind a signal's handler.
std::uint64_t Arrivals::newest_call_before(const CallSegment& segment, Address at) {
  for (std::uint64_t n = segment.number - 1; n != 0 && scanned_ < kMaxScanned; --n, ++scanned_) {
    const CallSegment one = calls_.at(n);
    if (one.function == nullptr) return 0;
    if (same_function(*one.function, *segment.function) && ends_with_call_before(n, at)) return n;
  }
  return 0;
}

// Who came back to a function by other means than a return to behind its call, and the first
// segment of that; 0: nobody.
std::uint64_t Arrivals::unwinder_of(const CallSegment& segment) {
  const CallSegment before = calls_.at(segment.number - 1);
  if (segment.caller == before.number || same_function(*segment.function, *before.function))
    return 0;
  CallSegment part = before;
  for (int level = 0; level < kMaxUnwinderLevels && part.function != nullptr; ++level) {
    if (part.function->plain_name().starts_with("_Unwind_")) return newest_entry(part);
    if (part.caller == 0 || part.caller >= part.number) break;
    part = calls_.at(part.caller);
  }
  return segment.earlier != 0 ? newest_entry(before) : 0;
}

// The segment that the newest call of a function began with, up to the given one.
std::uint64_t Arrivals::newest_entry(const CallSegment& of) {
  for (std::uint64_t n = of.number; n != 0 && scanned_ < kMaxScanned; --n, ++scanned_) {
    const CallSegment segment = calls_.at(n);
    if (segment.function != nullptr && same_function(*segment.function, *of.function) &&
        first_address(segment) == of.function->entry)
      return n;
  }
  return first_part(of.number);
}

bool Arrivals::was_jumped_to(const CallSegment& segment) {
  if (segment.number == 1) return false;
  const CallSegment before = calls_.at(segment.number - 1);
  return before.function != nullptr && is_near_jump(last_instruction(before).kind);
}

// The begin of what returned to a segment, or of what had jumped there; 0: it is not held.
std::uint64_t Arrivals::outermost_callee(std::uint64_t number) {
  bool returns_there = number > calls_.size();  // where the thread stands
  // What a handler returns to is as if what the signal interrupted had called it as well.
  const std::uint64_t caller = returns_there ? 0 : calls_.at(number).caller;
  for (std::uint64_t part = number - 1; part != 0;) {
    returns_there = returns_there || calls_.at(part).caller == number;
    const CallSegment callee = calls_.at(first_part(part));
    if (event_before(callee)) return returns_there || callee.caller == caller ? callee.number : 0;
    if (!was_jumped_to(callee)) return returns_there ? callee.number : 0;
    part = callee.number - 1;
  }
  return 0;
}

// The segment that a signal interrupted, if its handler came back to where that was: by a system
// call in code that it returned to. 0: there is none.
std::uint64_t Arrivals::resumed_by_handler(const CallSegment& segment, Address at) {
  const std::uint64_t handler = outermost_callee(segment.number - 1);
  if (handler == 0) return 0;
  const auto event = event_before(calls_.at(handler));
  return event && event->from == at ? handler - 1 : 0;
}

// Whether it is the same function, only that its code lies elsewhere, or no branch led there.
bool Arrivals::is_inside(const CallSegment& segment, const CallSegment& before) {
  if (!last_instruction(before).is_branch()) return true;
  return segment.caller != before.number && same_function(*before.function, *segment.function);
}

}  // namespace tailtrace
