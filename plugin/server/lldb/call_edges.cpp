#include "plugin/server/lldb/call_edges.h"

#include <algorithm>
#include <utility>

namespace tailtrace {
namespace {

constexpr std::size_t kMaxIntrusions = 1024;
constexpr std::size_t kMaxOpen = 1 << 20;
constexpr std::size_t kMaxSearched = 1 << 14;
constexpr Address kAnywhere{0}, kToHandled{1};  // what it returns to is not known

bool returns(const HistoryItem& item) { return item.instruction.kind == InstructionClass::kReturn; }

// Whether it goes back behind a handler to what was interrupted.
bool resumes(const HistoryItem& item) {
  if (item.branch == nullptr) return false;
  const Address to = item.branch->to;
  const bool is_next = to == item.instruction.next() || to == item.instruction.address;
  return item.branch->kind == RecordKind::kSystemReturn ||
         (item.branch->kind == RecordKind::kSystemCall && !is_next);
}

Address target_of(const HistoryItem& item) {
  return item.branch == nullptr ? kAnywhere : item.branch->to;
}

// What led to an item's instruction, newest first, and to nothing in between.
std::vector<BranchRecord> interruptions_before(const History& history, const HistoryItem& item) {
  std::vector<BranchRecord> found;
  if (item.is_gap) return found;
  auto one = interruption_before(history, item);
  for (std::uint64_t back = 2; one && found.size() < kMaxIntrusions; ++back) {
    found.push_back(*one);
    if (one->insns != 0 || item.record.value < back) break;
    one = history.record({item.record.value - back});
    if (one && (!is_interruption(one->kind) || one->to != found.back().from)) break;
  }
  return found;
}

bool enters_handler(const BranchRecord& one) {
  return one.kind <= RecordKind::kSignal && one.from != one.to;
}

}  // namespace

bool calls(const HistoryItem& item) {
  return item.instruction.kind == InstructionClass::kCall ||
         item.instruction.kind == InstructionClass::kIndirectCall;
}

void OpenCalls::stand_on(const History& history, const HistoryItem& item) {
  led_here_ = interruptions_before(history, item);
  at_begin_ = !item.is_gap && item.instruction.address == function_.begin;
  was_inside_ = !item.is_gap && function_.contains(item.instruction.address);
}

bool OpenCalls::go_back_to(const History& history, const HistoryItem& item) {
  bool leaves = false;
  for (const BranchRecord& one : led_here_) {
    if (one.kind == RecordKind::kDiscontinuity) go_over_intrusion(one.to, one.from);
    if (enters_handler(one) && !close_call(kToHandled)) leaves = forget();
  }
  const bool is_inside = function_.contains(item.instruction.address);
  const bool is_open = !open_.empty() || uncounted_ != 0;
  const bool is_jump = item.instruction.kind == InstructionClass::kIndirectJump;
  if (!is_open && was_inside_ && !at_begin_ && !is_inside && is_jump) strayed_ = true;
  if (returns(item)) {
    open_call(target_of(item));
  } else if (resumes(item)) {
    open_call(kToHandled);
  } else if (calls(item)) {
    if (is_open)
      close_call(item.instruction.next());
    else if (strayed_)
      strayed_ = !is_inside;
    else
      leaves = true;
  }
  stand_on(history, item);
  return leaves;
}

void OpenCalls::go_on_to(const History& history, const HistoryItem& item) {
  const std::vector<BranchRecord> led_here = interruptions_before(history, item);
  for (auto one = led_here.rbegin(); one != led_here.rend(); ++one) {
    if (one->kind == RecordKind::kDiscontinuity) go_over_intrusion(one->from, one->to);
    if (!enters_handler(*one)) continue;
    open_call(one->from);
    open_call(kAnywhere);
  }
  if (std::exchange(lands_, false) && is_landing(item)) forget();
}

// Whether an exception or longjmp() leads back to where the walk began.
bool OpenCalls::is_landing(const HistoryItem& item) const {
  const Address address = item.instruction.address;
  if (!function_.contains(address) || address == function_.begin) return false;
  // Another call of the function may be meant.
  const auto is_inside = [&](Address returns_to) { return function_.contains(returns_to); };
  return open_.size() < kMaxSearched && std::ranges::count_if(open_, is_inside) <= 1;
}

bool OpenCalls::go_on_behind(const HistoryItem& item) {
  const bool is_inside = function_.contains(item.instruction.address);
  lands_ = item.instruction.kind == InstructionClass::kIndirectJump && !is_inside;
  if (calls(item)) open_call(item.instruction.next());
  if (resumes(item)) return !close_call(target_of(item)) && !close_any();
  if (!returns(item) || close_call(target_of(item))) return false;
  // To another stack, unless it is the function's own: then exceptions have left what it called.
  if (!open_.empty() && !is_inside && function_.begin != function_.end) return false;
  open_.clear();
  return !close_any();
}

// All that was called. True.
bool OpenCalls::forget() {
  open_.clear();
  uncounted_ = 0;
  return true;
}

void OpenCalls::open_call(Address returns_to) {
  if (open_.size() == kMaxOpen) {
    open_.erase(open_.begin(), open_.begin() + kMaxOpen / 2);
    uncounted_ += kMaxOpen / 2;
  }
  open_.push_back(returns_to);
}

// The innermost call that returns there, and all inside of it. False: there is none.
bool OpenCalls::close_call(Address returns_to) {
  if (open_.empty() && uncounted_ != 0) return close_any();
  const std::size_t searched = std::min(open_.size(), kMaxSearched);
  for (std::size_t back = 1; back <= searched; ++back) {
    const Address one = open_[open_.size() - back];
    if (one != returns_to && (one != kAnywhere || back != 1)) continue;
    open_.resize(open_.size() - back);
    return true;
  }
  return false;
}

bool OpenCalls::close_any() {
  if (none()) return false;
  if (open_.empty())
    --uncounted_;
  else
    open_.pop_back();
  return true;
}

// From one side of it to the other. Several may follow each other, and only the last one leads
// back.
void OpenCalls::go_over_intrusion(Address here, Address there) {
  const auto left = std::ranges::find(intrusions_, there, &Intrusion::place);
  if (left != intrusions_.end()) {
    open_.resize(std::min(open_.size(), left->open));
    intrusions_.erase(left, intrusions_.end());
  } else if (intrusions_.size() < kMaxIntrusions) {
    intrusions_.push_back({here, open_.size()});
    open_call(kAnywhere);
  }
}

}  // namespace tailtrace
