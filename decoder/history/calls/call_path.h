// Call paths: which calls were open at an item of a history, as far as they were recorded.
//
// Threading: as CallHistory.
#pragma once

#include <optional>
#include <vector>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

// One open call, where it stood.
struct PathFrame {
  const Function* function = nullptr;  // never null
  // The item asked for; of the others the last before the next inner one, or, where that call is
  // older than the history, the first behind the return from it.
  std::uint64_t item = 0;
  bool is_return = false;    // it is the latter
  bool tail_called = false;  // it jumped into the next inner one: nothing returns to it
  // A signal or the like that interrupted it, at `from`, and led to the next inner one. What was
  // interrupted before its first instruction has the item before that.
  std::optional<BranchRecord> event = {};
};

// The calls of the items up to `item`, so many of the newest as a CallHistory can surely hold.
// Errors: kBadInput as CallHistory::make. REQUIRES: an item of the history.
Result<CallHistory> calls_up_to(const History& history, Symbolizer& symbols, std::uint64_t item);

// A call that was open before the history began, where it goes on.
struct OlderCaller {
  const Function* function = nullptr;  // never null
  Address address;                     // in the call instruction
};

struct CallPath {
  std::vector<PathFrame> frames;   // innermost first; empty at a gap
  std::vector<OlderCaller> older;  // their callers (stop_stack.h), innermost first
  bool cut = false;                // there are more frames than were asked for
};

// REQUIRES: calls of the history that hold the item.
CallPath call_path(const History& history, Symbolizer& symbols, const CallHistory& calls,
                   std::uint64_t item, std::size_t limit_frames);

}  // namespace tailtrace
