// What items of a history are to whoever counts the calls that are open.
//
// A signal's handler is like two calls: what it returns to, the code that makes the system call
// behind which the interrupted function goes on, is as if that had been called first. A function
// that the debugger has the program call begins and ends where its pc was written.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/history/interruption.h"

namespace tailtrace {

bool calls(const HistoryItem& item);

// The calls that a walk from item to item is inside of, seen from the function where it began, or
// from one so many callers further out.
class OpenCalls {
 public:
  explicit OpenCalls(std::uint64_t callers = 0) : depth_(callers) {}

  bool none() const { return depth_ == 0; }

  // Where a walk back begins.
  void stand_on(const History& history, const HistoryItem& item);
  // To an item from the one behind it. True: that leads out of the function.
  bool go_back_to(const History& history, const HistoryItem& item);

  // To an item from the one before it.
  void go_on_to(const History& history, const HistoryItem& item);
  // Behind it. True: that leads out of the function.
  bool go_on_behind(const HistoryItem& item);

 private:
  // A function that the debugger had the program call in between.
  struct Intrusion {
    Address place;  // where the program stands
    std::uint64_t depth = 0;
  };
  void go_over_intrusion(Address here, Address there);

  std::uint64_t depth_;
  std::vector<Intrusion> intrusions_;
  std::vector<BranchRecord> led_here_;  // to where a walk back stands, between two instructions
};

}  // namespace tailtrace
