#include "decoder/history/queries/why.h"

#include <algorithm>

#include "decoder/history/calls/call_path.h"
#include "decoder/history/queries/arrivals.h"
#include "decoder/history/queries/function_graphs.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxWhySteps = 1 << 22;  // items that are looked at

bool is_choice(InstructionClass kind) {
  return kind == InstructionClass::kConditional || kind == InstructionClass::kIndirectJump;
}

class ChainFinder {
 public:
  ChainFinder(const History& history, Symbolizer& symbols, const CallHistory& calls,
              std::size_t limit)
      : history_(history),
        calls_(calls),
        limit_(limit),
        symbols_(symbols),
        graphs_(history, symbols),
        arrivals_(history, calls),
        cursor_(history) {
    for (std::uint64_t n = 1; calls.gaps() != 0 && n <= calls.size(); ++n)
      if (calls.at(n).function == nullptr) gaps_.push_back(n);
  }

  Reasons find(std::uint64_t item) {
    if (item > history_.newest()) {
      if (auto arrival = arrival_at_stop()) return go_to(*arrival) ? follow() : std::move(reasons_);
      --item;
    }
    reasons_.item = item;
    cursor_.seek(item);
    segment_ = calls_.at(*calls_.holding(item));
    if (cursor_.item().is_gap) return ended(Reasons::End::kGap, item);
    about_ = cursor_.item().instruction.address;
    item_ = item;
    return follow();
  }

 private:
  Reasons follow() {
    for (std::uint64_t step = 0; step < kMaxWhySteps && !history_.is_abandoned(); ++step) {
      if (reasons_.decisions.size() >= limit_) return ended(Reasons::End::kLimit, item_);
      if (item_ == segment_.items.first) {
        if (!go_out()) return std::move(reasons_);
        continue;
      }
      cursor_.seek(--item_);
      look();
    }
    return ended(Reasons::End::kLimit, item_);
  }

  // Nothing when it is not known where the thread stands, or how it came there.
  std::optional<Arrival> arrival_at_stop() {
    const std::optional<Address> stop = history_.stop();
    if (!stop) return std::nullopt;
    const CallSegment newest = calls_.at(calls_.size());
    auto arrival = arrivals_.of_stop(newest, *stop, symbols_.function_at(*stop));
    if (!arrival) return std::nullopt;
    reasons_.item = history_.newest() + 1;
    about_ = *stop;
    segment_.number = newest.number + 1;
    return arrival;
  }

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
    decision.epoch = item.epoch;
    decision.to = item.branch != nullptr ? item.branch->to : item.instruction.next();
    return decision;
  }

  void look() {
    const HistoryItem& item = cursor_.item();
    if (!is_choice(item.instruction.kind)) return;
    Decision decision = decision_at_cursor();
    if (!graphs_.decides(*segment_.function, decision.address, decision.to, about_, item.epoch))
      return;
    add(decision);
  }

  void add(const Decision& decision) {
    about_ = decision.address;
    if (!is_linkage(decision)) reasons_.decisions.push_back(decision);
  }

  // How a function of another module is found the first time says nothing of why it was called.
  bool is_linkage(const Decision& decision) const {
    auto is_linkage = [](const Function& function) {
      const std::string& name = function.plain_name();
      return name.ends_with("@plt") || name.starts_with("_dl_runtime_resolve");
    };
    if (decision.event || is_near_call(decision.kind)) return false;
    return is_linkage(*segment_.function) ||
           is_linkage(symbols_.function_in(decision.to, decision.epoch));
  }

  // From the first item of a segment to what led there. False: nothing more is known.
  bool go_out() { return go_to(arrivals_.of(segment_)); }

  bool go_to(const Arrival& arrival) {
    switch (arrival.how) {
      case Arrival::How::kBegin:
        return finished(Reasons::End::kBegin, 0);
      case Arrival::How::kGap:
        return finished(Reasons::End::kGap, calls_.at(arrival.from).items.first);
      case Arrival::How::kCallee:
        return go_to_begin_of(arrival.begin);
      default:
        return go_to_end_of(arrival);
    }
  }

  bool go_to_begin_of(std::uint64_t number) {
    segment_ = calls_.at(number);
    item_ = segment_.items.first;
    return true;
  }

  bool go_to_end_of(const Arrival& arrival) {
    auto gap = std::lower_bound(gaps_.begin(), gaps_.end(), arrival.from);
    if (gap != gaps_.end() && *gap < segment_.number)
      return finished(Reasons::End::kGap, calls_.at(*gap).items.first);
    segment_ = calls_.at(arrival.from);
    item_ = segment_.items.last;
    cursor_.seek(item_);
    if (arrival.how == Arrival::How::kWentOn)
      look();
    else
      add_what_led_to(arrival);
    return arrival.how != Arrival::How::kUnwound || go_to_begin_of(arrival.begin);
  }

  void add_what_led_to(const Arrival& arrival) {
    Decision decision = decision_at_cursor();
    decision.to = arrival.at;
    decision.event = arrival.event;
    add(decision);
    if (arrival.event) go_to_interrupted(arrival.event->from);
  }

  // What an event interrupted was not executed, but the instruction before may have led there.
  void go_to_interrupted(Address interrupted) {
    about_ = interrupted;
    if (!is_near_call(cursor_.item().instruction.kind)) return look();
    const Decision call = decision_at_cursor();
    if (call.to == interrupted) add(call);
  }

  bool finished(Reasons::End end, std::uint64_t item) {
    reasons_.end = end;
    reasons_.end_item = item;
    return false;
  }

  const History& history_;
  const CallHistory& calls_;
  std::size_t limit_;
  Symbolizer& symbols_;
  FunctionGraphs graphs_;
  Arrivals arrivals_;
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
  Result<CallHistory> calls = calls_up_to(history, symbols, std::min(item, history.newest()));
  if (!calls) return fail(std::move(calls.error()));
  return ChainFinder(history, symbols, *calls, limit_decisions).find(item);
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
