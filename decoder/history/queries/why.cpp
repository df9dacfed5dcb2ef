#include "decoder/history/queries/why.h"

#include <algorithm>
#include <memory>

#include "decoder/history/calls/call_path.h"
#include "decoder/history/queries/find.h"
#include "decoder/history/queries/flow_graph.h"

namespace tailtrace {
namespace {

// Items that are looked at, and how often a graph may be found to lack a branch.
constexpr std::uint64_t kMaxWhySteps = 1 << 22;
constexpr int kMaxReadings = 64;

bool is_choice(InstructionClass kind) {
  return kind == InstructionClass::kConditional || kind == InstructionClass::kIndirectJump;
}

// The graphs of the functions that a chain goes through.
class Graphs {
 public:
  explicit Graphs(const History& history) : code_(*history.frame().code) {
    history.each_record([this](const BranchRecord& record) {
      if (record.kind == RecordKind::kIndirectJump) jumps_[record.from].insert(record.to);
    });
  }

  bool decides(const Function& function, const Decision& branch, Address about, Epoch epoch) {
    Known& known = graphs_[{function.begin, epoch}];
    if (add(known, function, about) | add(known, function, branch.address) |
        add(known, function, branch.to))
      read(known, function, epoch);
    return known.graph && known.graph->decides(branch.address, branch.to, about);
  }

 private:
  struct Known {
    std::set<Address> entries;
    std::unique_ptr<FlowGraph> graph;
    int readings = 0;
  };

  // An address that was executed is part of the function, whether or not its code shows a way to
  // it.
  bool add(Known& known, const Function& function, Address address) {
    if (address < function.begin || address >= function.end) return false;
    if (known.graph && (known.graph->knows(address) || known.readings == kMaxReadings))
      return false;
    return known.entries.insert(address).second;
  }

  void read(Known& known, const Function& function, Epoch epoch) {
    ++known.readings;
    std::vector<Address> entries(known.entries.begin(), known.entries.end());
    if (!function.entry.is_null()) entries.push_back(function.entry);
    std::map<Address, std::set<Address>> jumps(jumps_.lower_bound(function.begin),
                                               jumps_.lower_bound(function.end));
    code_.set_epoch(epoch);
    known.graph = std::make_unique<FlowGraph>(code_, function.begin, function.end, entries, jumps);
  }

  CodeReader code_;
  std::map<Address, std::set<Address>> jumps_;
  std::map<std::pair<Address, Epoch>, Known> graphs_;
};

class ChainFinder {
 public:
  ChainFinder(const History& history, const CallHistory& calls, std::size_t limit)
      : history_(history), calls_(calls), limit_(limit), graphs_(history), cursor_(history) {
    for (std::uint64_t n = 1; calls.gaps() != 0 && n <= calls.size(); ++n)
      if (calls.at(n).function == nullptr) gaps_.push_back(n);
  }

  Reasons find(std::uint64_t item) {
    cursor_.seek(item);
    segment_ = calls_.at(*calls_.holding(item));
    if (cursor_.item().is_gap) return ended(Reasons::End::kGap, item);
    about_ = cursor_.item().instruction.address;
    item_ = item;
    for (std::uint64_t step = 0; step < kMaxWhySteps && !history_.is_abandoned(); ++step) {
      if (reasons_.decisions.size() == limit_) return ended(Reasons::End::kLimit, item_);
      if (item_ == segment_.items.first) {
        if (!go_out()) return std::move(reasons_);
        continue;
      }
      cursor_.seek(--item_);
      look();
    }
    return ended(Reasons::End::kLimit, item_);
  }

 private:
  Reasons ended(Reasons::End end, std::uint64_t item) {
    reasons_.end = end;
    reasons_.end_item = item;
    return std::move(reasons_);
  }

  Decision decision_at_cursor() const {
    const HistoryItem& item = cursor_.item();
    Decision decision;
    decision.item = item.number;
    decision.address = item.instruction.address;
    decision.kind = item.instruction.kind;
    decision.taken = item.branch != nullptr;
    decision.to = item.branch != nullptr ? item.branch->to : item.instruction.next();
    return decision;
  }

  void look() {
    const HistoryItem& item = cursor_.item();
    if (!is_choice(item.instruction.kind)) return;
    Decision decision = decision_at_cursor();
    if (!graphs_.decides(*segment_.function, decision, about_, item.epoch)) return;
    add(decision);
  }

  void add(const Decision& decision) {
    reasons_.decisions.push_back(decision);
    about_ = decision.address;
  }

  // From the first item of a segment to what was before it in the same call, or to its caller.
  bool go_out() {
    if (std::optional<BranchRecord> event = event_before()) return go_before(event);
    if (segment_.earlier != 0) return go_to(segment_.earlier, std::nullopt, false);
    // A caller that comes later is one that was returned to: the call itself is not held.
    if (segment_.caller != 0 && segment_.caller < segment_.number)
      return go_to(segment_.caller, std::nullopt, true);
    if (go_into_callee()) return true;
    std::uint64_t first = segment_.items.first;
    bool after_gap = segment_.number > 1 && calls_.at(segment_.number - 1).function == nullptr;
    reasons_.end = after_gap ? Reasons::End::kGap : Reasons::End::kBegin;
    reasons_.end_item = after_gap ? first - 1 : 0;
    return false;
  }

  // What was returned to, and not called before: the kernel put it under a signal's handler, or the
  // call is not held. What led to its callee led to it.
  bool go_into_callee() {
    if (segment_.number == 1) return false;
    CallSegment callee = calls_.at(segment_.number - 1);
    if (callee.caller != segment_.number) return false;
    while (callee.earlier != 0) callee = calls_.at(callee.earlier);
    segment_ = callee;
    item_ = segment_.items.first;
    return true;
  }

  bool go_before(const std::optional<BranchRecord>& event) {
    if (segment_.number == 1) return false;
    return go_to(segment_.number - 1, event, true);
  }

  bool go_to(std::uint64_t number, const std::optional<BranchRecord>& event, bool decides) {
    auto gap = std::lower_bound(gaps_.begin(), gaps_.end(), number);
    if (gap != gaps_.end() && *gap < segment_.number) {
      reasons_.end = Reasons::End::kGap;
      reasons_.end_item = calls_.at(*gap).items.first;
      return false;
    }
    segment_ = calls_.at(number);
    item_ = segment_.items.last;
    cursor_.seek(item_);
    if (!decides) {
      look();
      return true;
    }
    Decision decision = decision_at_cursor();
    decision.event = event;
    add(decision);
    return true;
  }

  // A signal or the like that led to the segment's first instruction.
  std::optional<BranchRecord> event_before() {
    cursor_.seek(segment_.items.first);
    const HistoryItem& item = cursor_.item();
    if (!item.begins_run || item.record.value == 0 || segment_.earlier != 0) return std::nullopt;
    std::optional<BranchRecord> before = history_.record({item.record.value - 1});
    bool led_here = before && is_event(*before) && before->to == item.instruction.address;
    return led_here ? before : std::nullopt;
  }

  const History& history_;
  const CallHistory& calls_;
  std::size_t limit_;
  Graphs graphs_;
  HistoryCursor cursor_;
  std::vector<std::uint64_t> gaps_;  // segments
  CallSegment segment_;
  std::uint64_t item_ = 0;
  Address about_;  // what is to be explained
  Reasons reasons_;
};

// How many rounds of `count` decisions there are from `first` on.
std::size_t rounds(const std::vector<Decision>& decisions, std::size_t first, std::size_t count) {
  std::size_t same = 0;
  while (first + count + same < decisions.size() &&
         decisions[first + same].same_as(decisions[first + count + same]))
    ++same;
  return same / count + 1;
}

}  // namespace

bool Decision::same_as(const Decision& other) const {
  return address == other.address && to == other.to && event.has_value() == other.event.has_value();
}

Result<Reasons> find_reasons(const History& history, Symbolizer& symbols, std::uint64_t item,
                             std::size_t limit_decisions) {
  Result<CallHistory> calls = calls_up_to(history, symbols, item);
  if (!calls) return fail(std::move(calls.error()));
  return ChainFinder(history, *calls, limit_decisions).find(item);
}

std::vector<FoldedDecisions> fold_decisions(const std::vector<Decision>& decisions) {
  std::vector<FoldedDecisions> folded;
  for (std::size_t at = 0; at < decisions.size();) {
    FoldedDecisions best{at, 1, 1};
    for (std::size_t count = 1; count <= kMaxRound; ++count) {
      std::size_t times = rounds(decisions, at, count);
      if (times > 1 && times * count > best.times * best.count) best = {at, count, times};
    }
    folded.push_back(best);
    at += best.count * best.times;
  }
  return folded;
}

}  // namespace tailtrace
