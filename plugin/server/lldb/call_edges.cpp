#include "plugin/server/lldb/call_edges.h"

#include <algorithm>

namespace tailtrace {
namespace {

constexpr std::uint64_t kHandlerCalls = 2;
constexpr std::size_t kMaxIntrusions = 1024;

// Whether it returns: from a function, or behind a handler to what was interrupted.
bool returns(const HistoryItem& item) {
  if (item.instruction.kind == InstructionClass::kReturn) return true;
  if (item.branch == nullptr) return false;
  const Address to = item.branch->to;
  const bool is_next = to == item.instruction.next() || to == item.instruction.address;
  return item.branch->kind == RecordKind::kSystemReturn ||
         (item.branch->kind == RecordKind::kSystemCall && !is_next);
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
}

bool OpenCalls::go_back_to(const History& history, const HistoryItem& item) {
  bool leaves = false;
  for (const BranchRecord& one : led_here_) {
    if (one.kind == RecordKind::kDiscontinuity) go_over_intrusion(one.to, one.from);
    if (!enters_handler(one)) continue;
    leaves |= depth_ < kHandlerCalls;
    depth_ -= std::min(depth_, kHandlerCalls);
  }
  leaves |= calls(item) && depth_ == 0;
  if (returns(item))
    ++depth_;
  else if (calls(item) && depth_ > 0)
    --depth_;
  stand_on(history, item);
  return leaves;
}

void OpenCalls::go_on_to(const History& history, const HistoryItem& item) {
  const std::vector<BranchRecord> led_here = interruptions_before(history, item);
  for (auto one = led_here.rbegin(); one != led_here.rend(); ++one) {
    if (one->kind == RecordKind::kDiscontinuity) go_over_intrusion(one->from, one->to);
    if (enters_handler(*one)) depth_ += kHandlerCalls;
  }
}

bool OpenCalls::go_on_behind(const HistoryItem& item) {
  if (calls(item)) ++depth_;
  if (!returns(item)) return false;
  if (depth_ == 0) return true;
  --depth_;
  return false;
}

// From one side of it to the other. Several may follow each other, and only the last one leads
// back.
void OpenCalls::go_over_intrusion(Address here, Address there) {
  const auto left = std::ranges::find(intrusions_, there, &Intrusion::place);
  if (left != intrusions_.end()) {
    depth_ = left->depth;
    intrusions_.erase(left, intrusions_.end());
  } else if (intrusions_.size() < kMaxIntrusions) {
    intrusions_.push_back({here, depth_++});
  }
}

}  // namespace tailtrace
