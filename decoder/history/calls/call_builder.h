// CallBuilder: puts a CallHistory together, run by run; a part of calls.h, of no use elsewhere.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/history/calls/calls.h"
#include "decoder/history/runs.h"

namespace tailtrace {

// Whether control that was in `from` and now is in `to` has left the function, by all their names.
bool function_switched(const Function& from, const Function& to);

// A limit on how far stacks are searched: a file may describe deep stacks that match nowhere.
class StackBudget {
 public:
  // False when there is no more.
  bool take() { return left_ != 0 && --left_ != 0; }
  bool spent() const { return left_ == 0; }

 private:
  std::uint64_t left_ = std::uint64_t{1} << 28;
};

// The stacks that a list of segments describes, by their numbers.
class CallStacks {
 public:
  CallStacks(std::vector<KeptSegment>& segments, const std::vector<const Function*>& functions)
      : segments_(segments), functions_(functions) {}

  KeptSegment& at(std::uint32_t number) { return segments_[number - 1]; }
  std::uint32_t newest() const { return static_cast<std::uint32_t>(segments_.size()); }

  // Whether a segment is of another function; a gap is of none that is known.
  bool switched(std::uint32_t segment, std::uint32_t function);

  // The segment itself or the nearest one up its stack that is of the function; 0: none.
  std::uint32_t find_function(std::uint32_t segment, std::uint32_t function);
  // The same for one that ends with a call.
  std::uint32_t find_call(std::uint32_t segment);
  // The outermost.
  std::uint32_t find_top(std::uint32_t segment);
  // The caller that would be returned to: tail calls are left out.
  std::uint32_t returns_to(std::uint32_t segment);

  // Sets the caller of all parts of the call that the segment is of.
  void set_caller(std::uint32_t segment, std::uint32_t caller, bool tail_called);

  StackBudget& budget() { return budget_; }

 private:
  std::vector<KeptSegment>& segments_;
  const std::vector<const Function*>& functions_;
  StackBudget budget_;
};

// Connects the stacks on both sides of every gap as far as they match.
void bridge_gaps(CallStacks& stacks, const std::vector<std::uint32_t>& gaps);

class CallBuilder {
 public:
  CallBuilder(const History& history, Symbolizer& symbols, Range range);

  Result<CallHistory> build();

 private:
  void add_run(const HistoryRun& run, CodeReader& code);
  void add_instructions(const HistoryRun& run, CodeReader& code);
  void add_gap(std::uint64_t item);
  void add_event(const BranchRecord& record, Epoch when);

  // What `from_` was interrupted by may come back to where that was.
  struct Interruption {
    Address at;                          // the first instruction that was not executed
    std::uint32_t function = 0;          // its own
    std::uint32_t from = 0;              // the segment before it
    Instruction last;                    // and that one's last instruction
    std::optional<BranchRecord> led_to;  // `at`, in place of that
    std::uint32_t handler = 0;           // the segment that interrupted; 0: none began
    std::uint32_t restorer = 0;          // the one that the handler returned to
  };
  static constexpr std::size_t kMostInterruptions = 64;  // within each other

  void arrive(Address address, std::uint64_t item, Epoch when);
  bool go_back(Address address, std::uint32_t function);
  bool arrive_by_event(std::uint32_t function, Address address, std::uint64_t item);
  void arrive_by_instruction(std::uint32_t function, Address address, std::uint64_t item);
  void arrive_by_jump(std::uint32_t function, Address address, std::uint64_t item);

  std::uint32_t begin_segment(std::uint32_t function, std::uint64_t item);
  std::uint32_t begin_unseen(std::uint32_t function, Address address, std::uint64_t item);
  void begin_call(std::uint32_t function, std::uint64_t item, std::uint32_t caller,
                  bool tail_called = false);
  void begin_part(std::uint32_t function, std::uint64_t item, std::uint32_t before);
  void begin_switch(std::uint32_t function, std::uint64_t item);
  void begin_return(std::uint32_t function, Address address, std::uint64_t item);
  void begin_return_to_nobody(std::uint32_t function, Address address, std::uint64_t item);

  std::uint32_t handler_that_returns();
  bool switched(std::uint32_t from, std::uint32_t to) const;  // functions
  std::uint32_t index_of(const Function& function);
  void shift_levels();
  bool full() const { return calls_.segments_.size() >= CallHistory::kMaxSegments; }

  const History& history_;
  Symbolizer& symbols_;
  Range range_;
  CallHistory calls_;
  CallStacks stacks_;
  std::vector<std::uint32_t> gaps_;
  std::unordered_map<const Function*, std::uint32_t> indices_;
  // Of the instruction that arrives: what it was led to by, and from where.
  std::uint32_t from_ = 0;  // a segment
  Instruction last_;        // and that one's last
  std::optional<BranchRecord> event_;
  std::vector<Interruption> interruptions_;  // the newest last
};

}  // namespace tailtrace
