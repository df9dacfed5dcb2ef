#include "decoder/history/calls/call_path.h"

#include <algorithm>
#include <cassert>

namespace tailtrace {

Result<CallHistory> calls_up_to(const History& history, Symbolizer& symbols, std::uint64_t item) {
  // A segment has an item at least.
  std::uint64_t count =
      std::min<std::uint64_t>(history.from_oldest(item), CallHistory::kMaxSegments - 1);
  return CallHistory::make(history, symbols, {item - count + 1, item});
}

CallPath call_path(const CallHistory& calls, std::uint64_t item, std::size_t limit_frames) {
  CallPath path;
  std::optional<std::uint64_t> number = calls.holding(item);
  assert(number);
  // Corrupt records may describe callers in a circle; there is none in an honest history.
  std::uint64_t left = calls.size();
  bool jumped = false;          // the frame before was jumped into
  std::uint64_t inner = ~0ull;  // its segment
  while (*number != 0 && left-- != 0) {
    CallSegment segment = calls.at(*number);
    if (segment.function == nullptr) return path;
    if (path.frames.size() == limit_frames) {
      path.cut = true;
      return path;
    }
    PathFrame frame{segment.function, segment.items.last, false, jumped};
    if (path.frames.empty()) frame.item = item;
    if (*number > inner) {
      frame.is_return = true;
      frame.item = segment.items.first;
    }
    path.frames.push_back(frame);
    jumped = segment.tail_called;
    inner = *number;
    number = segment.caller;
  }
  return path;
}

}  // namespace tailtrace
