// CallBuilder: puts a CallHistory together, run by run; a part of calls.h, of no use elsewhere.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/history/calls/call_stacks.h"
#include "decoder/history/calls/calls.h"
#include "decoder/history/calls/suspended_calls.h"
#include "decoder/history/runs.h"

namespace tailtrace {

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
    Address run;                         // from where on no branch was taken up to that
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
  void make_part(std::uint32_t number, std::uint32_t before);
  void begin_switch(std::uint32_t function, std::uint64_t item);
  void begin_return(std::uint32_t function, Address address, std::uint64_t item);
  void begin_landing(std::uint32_t function, Address address, std::uint64_t item);
  void begin_return_to_nobody(std::uint32_t function, Address address, std::uint64_t item);
  bool calls_into_itself(std::uint32_t function, Address address);
  void begin_call_by_retpoline(std::uint32_t function, std::uint64_t item);
  void begin_older(std::uint32_t function, Address address, std::uint64_t item);
  void begin_stack(std::uint32_t function, Address address, std::uint64_t item);

  std::uint32_t call_that_goes_on(std::uint32_t own, std::uint32_t function, Address address);
  void note_way_back();
  std::uint32_t call_that_is_jumped_back_to(Address address);
  std::uint32_t find_function(std::uint32_t segment, std::uint32_t function, Address address);
  void land_inside(Address address);
  bool left_stack();
  bool begins_without_name(std::uint32_t function, Address address);
  bool goes_on_with_more_stack(std::uint32_t function, Address address);
  bool begins_again_with_more_stack(std::uint32_t function);
  bool leaves_older_handler(Address address);
  bool is_called(std::uint32_t segment, std::string_view name);
  bool is_open(std::uint32_t handler);
  std::uint32_t handler_that_returns();
  bool begins_at(std::uint32_t function, Address address) const;
  bool switched(std::uint32_t from, std::uint32_t to) const;  // functions
  std::uint32_t index_of(const Function& function);
  void shift_levels();
  bool full() const { return calls_.segments_.size() >= CallHistory::kMaxSegments; }

  const History& history_;
  Symbolizer& symbols_;
  Range range_;
  CallHistory calls_;
  CallStacks stacks_;
  SuspendedCalls suspended_;
  std::vector<std::uint32_t> gaps_;
  std::unordered_map<const Function*, std::uint32_t> indices_;
  std::vector<bool> returns_twice_{false};  // by index; as `setjmp` does
  // Segments that called such a function, by where they go on, the newest last.
  std::unordered_map<Address, std::vector<std::uint32_t>> jumped_back_to_;
  // Of the instruction that arrives: what it was led to by, and from where.
  std::uint32_t from_ = 0;  // a segment
  Instruction last_;        // and that one's last
  Address run_;             // from where on no branch was taken up to that
  CodeReader* code_ = nullptr;
  Epoch when_;                                    // of the code
  std::unordered_map<Address, bool> left_stack_;  // by branch
  std::uint32_t called_inside_ = 0;  // the newest that its own function called behind its begin
  bool is_inside_twice_ = false;     // as was what called that
  std::optional<BranchRecord> event_;
  std::vector<Interruption> interruptions_;  // the newest last
};

}  // namespace tailtrace
