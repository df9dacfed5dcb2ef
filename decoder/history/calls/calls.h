// CallHistory: a history as segments of functions, numbered as GDB numbers them.
//
// A segment is a stretch of instructions inside one function; calling, returning and jumping into
// another function begin a new one, and a gap is one by itself. Segments count from 1, the oldest.
// The rules of where one begins are those of GDB's `record function-call-history` (manual, "Process
// Record and Replay"), so that its numbers can be used here and ours there:
//
//   * A return, a call but to the next instruction, a jump to a function's entry or to another
//     function whose entry is not known (a tail call), and any other change of the function's name
//     begin a segment.
//   * `_dl_runtime_resolve` that returns into the function it found makes a tail call; a jump out
//     of `_Unwind_...` into a function that is being called returns to it.
//   * A return goes back to the innermost caller of that name; where none was recorded, it makes
//     one a level further out. Levels are shifted so that the lowest is 0.
//   * Across a gap, stacks are connected where the functions on them match, longest match first.
//
// Callers and levels are GDB's as well but where it loses the stack:
//
//   * A return, or a jump through a register or memory to another function, goes back to the call
//     that goes on right there, if nothing has come back to it and there is one. It may be of
//     another stack, as coroutines have, or of another call of that function than the innermost.
//   * Behind an instruction that loads the stack pointer (stack_pointer.h) a stack begins where
//     none goes on. Else a return to a function's begin, or where code without a name is not behind
//     a call, is a tail call, but right behind the innermost call that is open: there its caller
//     goes on by another name.
//   * A function that calls into itself behind its begin, and then returns to the begin of another
//     one, had no call: that is a retpoline, which overwrites where its own call would return to.
//     One that is inlined is called likewise, which is the other one's call.
//   * A signal's handler, or whatever else led elsewhere between two instructions, is called by
//     what it interrupted. What it returns to, the code that makes the system call, is as if that
//     had been called so too. Behind the system call the interrupted function goes on. A handler
//     that was left otherwise, as by `longjmp`, does not come back.
//   * What compilers put apart of a function ("f.cold") is a part of the same call.
//   * A function that begins again, or is called inside, by what gave it more stack
//     (`runtime.morestack`, `__morestack`) is so as well.
//   * `_Unwind_Resume` does not return into its caller, which has cleaned up.
//   * Any jump into the middle of another function that is being called returns to it: `longjmp`.
//     One that has no name is told by its call of `setjmp`. One that has returned itself, as musl's
//     `sigsetjmp`, begins again.
//   * Which function without a name an unwinder or a `longjmp` leads to is told by the tables for
//     unwinding the stack. If these have no name either GDB begins no segment: all of the last one
//     is of where they lead. GDB takes an unwinder that led there for still open, and may have one
//     more segment where the next one is left.
//
// Threading: immutable once made. The symbolizer must outlive it.
#pragma once

#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

struct CallSegment {
  std::uint64_t number = 0;            // from 1
  Range items;                         // of the history; a gap has one
  const Function* function = nullptr;  // of its first instruction; null: a gap
  std::int32_t level = 0;              // 0 or more
  // Numbers of other segments, 0: none. The segment that called it, and the earlier and later parts
  // of the same call, with what it called in between.
  std::uint64_t caller = 0;
  std::uint64_t earlier = 0;
  std::uint64_t later = 0;
  bool tail_called = false;   // the caller jumped here
  bool begun_before = false;  // its first part that is there, but nobody saw the call begin
};

// How a segment is kept. Links are numbers of segments, 0: none.
struct KeptSegment {
  std::uint64_t first = 0;  // item
  std::uint32_t caller = 0;
  std::uint32_t earlier = 0;
  std::uint32_t later = 0;
  std::int32_t level = 0;
  std::uint32_t function = 0;                        // index; 0: a gap
  InstructionClass last = InstructionClass::kOther;  // its last instruction
  bool tail_called = false;
  bool begun_before = false;  // unless it has an earlier part

  bool is_gap() const { return function == 0; }
};
static_assert(sizeof(KeptSegment) == 32);

class CallHistory {
 public:
  // Segments of at most this many are kept, 32 bytes each.
  static constexpr std::size_t kMaxSegments = std::size_t{1} << 24;

  // Of a stretch of a history; numbers begin there. Errors: kUsage when the stretch has more
  // segments than can be kept; kBadInput when its calls are too entangled to be followed;
  // kNegative when the history is abandoned.
  // REQUIRES: a range of the history.
  static Result<CallHistory> make(const History& history, Symbolizer& symbols, Range range);

  std::uint64_t size() const { return segments_.size(); }
  std::uint64_t gaps() const { return gaps_; }

  // REQUIRES: 1 <= number <= size().
  CallSegment at(std::uint64_t number) const;

  // The first and the last part that was recorded of the call that a segment is of.
  // Corrupt records may describe parts in a circle: then any of them.
  std::uint64_t first_part(std::uint64_t number) const;
  std::uint64_t last_part(std::uint64_t number) const;

  // The segment that holds an item of the history; nothing when none does.
  std::optional<std::uint64_t> holding(std::uint64_t item) const;

 private:
  friend class CallBuilder;
  std::uint64_t follow(std::uint64_t number, std::uint32_t KeptSegment::*link) const;

  std::vector<KeptSegment> segments_;
  std::vector<const Function*> functions_;  // functions_[0] is null
  std::uint64_t end_ = 1;                   // one past the last item
  std::uint64_t gaps_ = 0;
};

}  // namespace tailtrace
