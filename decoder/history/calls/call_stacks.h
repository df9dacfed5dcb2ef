// CallStacks: the stacks that a list of segments describes; a part of calls.h, of no use elsewhere.
//
// Threading: one thread at a time.
#pragma once

#include <vector>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

// Whether control that was in `from` and now is in `to` has left the function, by all their names.
bool function_switched(const Function& from, const Function& to);
// Whether it is what a compiler puts apart of a function, as it is seldom executed ("f.cold").
bool is_put_apart(const Function& part);
// Whether both are of one function, of which a part may be put apart.
bool are_parts_of_one(const Function& a, const Function& b);

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
  // Whether it is of that function, or of a part of it.
  bool is_part_of(std::uint32_t segment, std::uint32_t function);

  // The segment itself or the nearest one up its stack that is of the function, or of a part of it;
  // 0: none.
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

}  // namespace tailtrace
