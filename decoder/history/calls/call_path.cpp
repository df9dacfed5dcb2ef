#include "decoder/history/calls/call_path.h"

#include <algorithm>
#include <cassert>

#include "decoder/history/calls/call_stacks.h"
#include "decoder/history/interruption.h"

namespace tailtrace {

Result<CallHistory> calls_up_to(const History& history, Symbolizer& symbols, std::uint64_t item) {
  // A segment has an item at least.
  std::uint64_t count =
      std::min<std::uint64_t>(history.from_oldest(item), CallHistory::kMaxSegments - 1);
  return CallHistory::make(history, symbols, {item - count + 1, item});
}

namespace {

class PathFinder {
 public:
  PathFinder(const History& history, Symbolizer& symbols, const CallHistory& calls,
             std::size_t limit)
      : history_(history), symbols_(symbols), calls_(calls), limit_(limit), cursor_(history) {}

  CallPath find(std::uint64_t number, std::uint64_t item) {
    // Corrupt records may describe callers in a circle; there is none in an honest history.
    for (std::uint64_t left = calls_.size(); number != 0 && left != 0; --left) {
      const CallSegment segment = calls_.at(number);
      if (segment.function == nullptr || !push(frame_of(segment, item))) break;
      inner_ = number;
      number = outward_from(segment);
    }
    return std::move(path_);
  }

 private:
  PathFrame frame_of(const CallSegment& segment, std::uint64_t item) {
    PathFrame frame{segment.function, segment.items.last, false, jumped_, event_};
    if (event_) frame.item = interrupted_;
    event_.reset();
    if (path_.frames.empty()) frame.item = item;
    if (segment.number > inner_) {
      frame.is_return = true;
      frame.item = segment.items.first;
    }
    return frame;
  }

  // False: there are enough.
  bool push(PathFrame frame) {
    path_.cut = path_.frames.size() == limit_;
    if (!path_.cut) path_.frames.push_back(std::move(frame));
    return !path_.cut;
  }

  // A signal or the like that led to the begin of a call.
  std::optional<BranchRecord> event_before(const CallSegment& segment) {
    if (segment.number == 1 || calls_.at(segment.number - 1).function == nullptr)
      return std::nullopt;
    cursor_.seek(segment.items.first);
    epoch_ = cursor_.item().epoch;
    return interruption_before(history_, cursor_.item());
  }

  // The handler that returned to a call, which nothing else had called; else the call itself.
  CallSegment handler_or_itself(const CallSegment& begin) {
    if (begin.number == 1 || begin.tail_called) return begin;
    const CallSegment before = calls_.at(calls_.first_part(begin.number - 1));
    return before.number < begin.number && before.caller == begin.caller ? before : begin;
  }

  // Whether an event leads back to what the same call was about to begin with, when a debugger had
  // the program call something else in between.
  bool goes_on(const CallSegment& begin, const BranchRecord& event) {
    if (event.kind != RecordKind::kDiscontinuity || begin.number == 1) return false;
    CallSegment before = calls_.at(calls_.first_part(begin.number - 1));
    // Outward to what the debugger had called first.
    for (std::uint64_t left = before.number; left != 0 && before.caller > begin.caller; --left)
      before = calls_.at(calls_.first_part(before.caller));
    if (before.function == nullptr || before.caller != begin.caller) return false;
    const auto led_away = event_before(before);
    return led_away && led_away->kind == event.kind && led_away->from == event.to;
  }

  // The segment that called this one, or that was interrupted for it; 0: none is known.
  std::uint64_t outward_from(const CallSegment& segment) {
    CallSegment begin = calls_.at(calls_.first_part(segment.number));
    auto event = begin.caller == 0 ? std::nullopt : event_before(begin);
    const bool is_call = event && goes_on(begin, *event);
    if (is_call) event.reset();
    if (begin.caller != 0 && !event && !is_call) {
      begin = handler_or_itself(begin);
      event = event_before(begin);
    }
    jumped_ = !event && segment.tail_called;
    if (!event) return segment.caller;
    interrupted_ = begin.items.first - 1;
    const Function& interrupted = symbols_.function_in(event->from, epoch_);
    if (!function_switched(*calls_.at(begin.caller).function, interrupted))
      event_ = event;
    else if (!push({&interrupted, interrupted_, false, false, event}))
      return 0;
    return begin.caller;
  }

  const History& history_;
  Symbolizer& symbols_;
  const CallHistory& calls_;
  std::size_t limit_;
  HistoryCursor cursor_;
  CallPath path_;
  bool jumped_ = false;                // the frame before was jumped into
  std::uint64_t inner_ = ~0ull;        // its segment
  std::optional<BranchRecord> event_;  // that interrupts the next one
  std::uint64_t interrupted_ = 0;      // its last item before that
  Epoch epoch_;                        // of the code, where an event was looked for last
};

}  // namespace

CallPath call_path(const History& history, Symbolizer& symbols, const CallHistory& calls,
                   std::uint64_t item, std::size_t limit_frames) {
  std::optional<std::uint64_t> number = calls.holding(item);
  assert(number);
  return PathFinder(history, symbols, calls, limit_frames).find(*number, item);
}

}  // namespace tailtrace
