// The calls that are open, for whoever steps in a history, in either direction.
//
// Which call a return belongs to is known by the address that it leads to: calls that an exception
// or longjmp() left do not return. A signal's handler is like two calls: what it returns to, the
// code that makes the system call behind which the interrupted function goes on, is as if that had
// been called first. A function that the debugger has the program call begins and ends where its pc
// was written.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/history/interruption.h"

namespace tailtrace {

bool calls(const HistoryItem& item);

struct CodeRange {
  Address begin, end;
  bool contains(Address address) const { return begin <= address && address < end; }
};

// The calls that a walk from item to item is inside of, seen from the function where it began, or
// from one so many callers further out.
class OpenCalls {
 public:
  // `function`: the code of the one where it began; empty where that is not known.
  explicit OpenCalls(const CodeRange& function, std::uint64_t callers = 0)
      : function_(function), uncounted_(callers) {}

  // Whether it is in that function.
  bool none() const { return open_.empty() && uncounted_ == 0 && !strayed_; }

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
    std::size_t open = 0;
  };
  void go_over_intrusion(Address here, Address there);
  void open_call(Address returns_to);
  bool close_call(Address returns_to);
  bool close_any();
  bool forget();
  bool is_landing(const HistoryItem& item) const;

  CodeRange function_;
  std::uint64_t uncounted_;    // calls below those in open_
  std::vector<Address> open_;  // by where they return to
  std::vector<Intrusion> intrusions_;
  std::vector<BranchRecord> led_here_;  // to where a walk back stands, between two instructions
  bool strayed_ = false;  // a walk back: among calls that an exception left, of this function
  bool lands_ = false;    // a walk on: an indirect jump leads from outside of the function
  bool at_begin_ = false, was_inside_ = false;
};

}  // namespace tailtrace
