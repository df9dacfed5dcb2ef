#include "decoder/history/calls/stop_stack.h"

#include <algorithm>

#include "decoder/history/calls/call_stacks.h"

namespace tailtrace {
namespace {

// What was recorded as open at a segment.
struct OpenCalls {
  // Those that are on the stack, innermost first: who jumped into the next inner one is gone.
  std::vector<CallSegment> kept;
  std::uint64_t outermost = 0;  // of all; 0: there is a gap instead
};

OpenCalls open_calls(const CallHistory& calls, std::uint64_t segment) {
  OpenCalls open;
  bool jumped = false;
  for (std::uint64_t left = calls.size(); segment != 0 && left != 0; --left) {
    const CallSegment call = calls.at(segment);
    if (call.function == nullptr) return {};
    if (!jumped) open.kept.push_back(call);
    open.outermost = segment;
    jumped = call.tail_called;
    segment = call.caller;
  }
  return open;
}

// What the newest instruction did to the stack: frames that it added, and whether the function that
// it is of has none any more.
struct LastMove {
  int frames = 0;
  bool has_left = false;
};

LastMove last_move(const History& history, Symbolizer& symbols) {
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  if (!cursor.valid() || cursor.item().branch == nullptr) return {};
  const Instruction& insn = cursor.item().instruction;
  const BranchRecord& branch = *cursor.item().branch;
  switch (branch.kind) {
    case RecordKind::kCall:
    case RecordKind::kIndirectCall:
      return {branch.to == insn.next() ? 0 : 1, false};
    case RecordKind::kReturn:
      return {-1, true};
    default:
      return {0, function_switched(symbols.function_in(insn.address, cursor.item().epoch),
                                   symbols.function_at(branch.to))};
  }
}

// How many frames of the stack are of the calls that were recorded as open, or newer; nothing where
// these are not the innermost ones of it.
std::optional<std::size_t> frames_recorded(LastMove move, Symbolizer& symbols,
                                           std::span<const CallSegment> open,
                                           std::span<const Address> stack) {
  for (std::size_t i = move.has_left ? 1 : 0; i < open.size(); ++i) {
    const std::size_t frame = i + static_cast<std::size_t>(move.frames);
    if (frame >= stack.size()) return std::nullopt;
    // A call may be the last instruction of its function.
    const Address at = frame == 0 ? stack[0] : stack[frame] - 1;
    if (function_switched(*open[i].function, symbols.function_at(at))) return std::nullopt;
  }
  return open.size() + static_cast<std::size_t>(move.frames);
}

}  // namespace

std::uint64_t anchor_of(const History& history, std::uint64_t item) {
  const bool is_near = history.newest() - item < CallHistory::kMaxSegments / 2;
  return is_near ? history.newest() : item;
}

void add_older_callers(const History& history, Symbolizer& symbols, const CallHistory& calls,
                       std::span<const Address> stack, std::size_t limit_frames, CallPath& path) {
  if (stack.empty() || path.cut || path.frames.empty()) return;
  if (calls.holding(history.newest()) != calls.size()) return;
  const OpenCalls open = open_calls(calls, calls.size());
  if (open.outermost == 0) return;
  const auto outermost = calls.holding(path.frames.back().item);
  if (!outermost || calls.first_part(*outermost) != calls.first_part(open.outermost)) return;
  const std::optional<std::size_t> recorded =
      frames_recorded(last_move(history, symbols), symbols, open.kept, stack);
  if (!recorded) return;
  for (Address behind : stack.subspan(std::min(*recorded, stack.size()))) {
    if (path.frames.size() + path.older.size() >= limit_frames) {
      path.cut = true;
      return;
    }
    path.older.push_back({&symbols.function_at(behind - 1), behind - 1});
  }
}

}  // namespace tailtrace
