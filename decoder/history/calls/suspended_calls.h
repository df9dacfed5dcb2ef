// SuspendedCalls: the calls of a list of segments that nothing has come back to, by where they go
// on; a part of calls.h, of no use elsewhere.
//
// A program that has several stacks (coroutines, fibers, goroutines) leaves one inside a call, and
// comes back to it from another. What is returned to tells which, but not at once: two stacks may
// have been left by the same function. Where that returns shows it.
//
// Threading: one thread at a time.
#pragma once

#include <unordered_map>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/history/calls/call_stacks.h"

namespace tailtrace {

class SuspendedCalls {
 public:
  explicit SuspendedCalls(CallStacks& stacks) : stacks_(stacks) {}

  // The segment ends with a call, behind which it goes on.
  void open(std::uint32_t segment, Address behind);
  // It has gone on.
  void close(std::uint32_t segment);
  // Those from a segment outwards, up to another one, are not come back to: they were unwound.
  void unwind(std::uint32_t from, std::uint32_t to);
  // Nobody knows what became of all so far.
  void clear();

  // Where a segment goes on is known if it ends with a call.
  bool knows_of(std::uint32_t segment) const { return place_of(segment) != 0; }
  bool goes_on_at(std::uint32_t segment, Address behind) const;
  // Null where that is not known.
  Address goes_on(std::uint32_t segment) const { return behind_[place_of(segment)]; }
  // The newest segment that goes on there, and is of the function; 0: none.
  std::uint32_t newest_at(Address behind, std::uint32_t function) const;

  // `from` has returned to what `call` had called, and so was its callee, not that of the stack
  // that it was taken for: moves what belongs to it over. A stretch of both stacks is alike, or
  // there would have been no mistake.
  void move(std::uint32_t from, std::uint32_t call);

 private:
  std::uint32_t place_of(std::uint32_t segment) const {
    return segment >= known_from_ && segment < places_.size() ? places_[segment] : 0;
  }
  std::uint32_t callee_left_in(std::uint32_t call, std::uint32_t function);
  std::uint32_t part_behind(std::uint32_t part, std::uint32_t place);
  void splice(std::uint32_t part, std::uint32_t earlier);

  CallStacks& stacks_;
  std::unordered_map<Address, std::uint32_t> numbers_;  // of places, from 1
  std::vector<std::vector<std::uint32_t>> open_{{}};    // by place, the newest last
  std::vector<Address> behind_{{}};                     // by place
  std::vector<std::uint32_t> places_;                   // by segment; 0: none
  std::size_t known_from_ = 0;                          // this segment on
};

}  // namespace tailtrace
