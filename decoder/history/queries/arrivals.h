// Arrivals: what led to the first instruction of a segment of calls.
//
// CallHistory connects segments by functions, and knows nothing of who unwound a stack. Here the
// instruction before tells, and what else is held.
//
// Threading: one thread at a time. The history and the calls must outlive it.
#pragma once

#include <optional>

#include "decoder/history/calls/calls.h"
#include "decoder/history/history.h"

namespace tailtrace {

struct Arrival {
  enum class How : std::uint8_t {
    kBegin,    // further back nothing is held
    kGap,      // before it is a gap
    kEvent,    // a signal or the like, behind the last item of `from`
    kWentOn,   // behind the last item of `from`: what was called or interrupted there has come back
    kBranch,   // by the last item of `from`
    kUnwound,  // by that as well, which was done for whoever called `begin`
    kCallee,   // returned to, and never called: whatever led to `begin` led to it
  };
  How how = How::kBegin;
  Address at;               // the first instruction
  std::uint64_t from = 0;   // a segment
  std::uint64_t begin = 0;  // the first segment of a call
  std::optional<BranchRecord> event = {};
};

class Arrivals {
 public:
  Arrivals(const History& history, const CallHistory& calls)
      : history_(history), calls_(calls), cursor_(history) {}

  // REQUIRES: a segment of instructions.
  Arrival of(const CallSegment& segment);

  // The same for where the thread stands, which it has not executed yet. Nothing when what was
  // recorded does not lead there, as where a debugger moved it. REQUIRES: the newest segment.
  std::optional<Arrival> of_stop(const CallSegment& newest, Address stop, const Function& function);

 private:
  // Segments that are looked through, of all arrivals together.
  static constexpr std::uint64_t kMaxScanned = 1 << 22;

  Arrival arrive(const CallSegment& segment, Address at, const std::optional<BranchRecord>& event);
  std::optional<BranchRecord> event_at_end(Position newest, Address stop) const;
  std::uint64_t first_part(std::uint64_t number) const;
  Address first_address(const CallSegment& segment);
  const Instruction& last_instruction(const CallSegment& segment);
  std::optional<BranchRecord> event_before(const CallSegment& segment);
  bool ends_with_call_before(std::uint64_t number, Address at);
  std::uint64_t call_returned_from(const CallSegment& segment, Address at);
  std::uint64_t newest_call_before(const CallSegment& segment, Address at);
  std::uint64_t unwinder_of(const CallSegment& segment);
  std::uint64_t newest_entry(const CallSegment& of);
  bool was_jumped_to(const CallSegment& segment);
  std::uint64_t outermost_callee(std::uint64_t number);
  std::uint64_t resumed_by_handler(const CallSegment& segment, Address at);
  bool is_inside(const CallSegment& segment, const CallSegment& before);

  const History& history_;
  const CallHistory& calls_;
  HistoryCursor cursor_;
  std::uint64_t scanned_ = 0;
};

}  // namespace tailtrace
