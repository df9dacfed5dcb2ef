// The return addresses of return compression, as states of the fast path.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "decoder/pt/fast/row.h"

namespace tailtrace::pt {

// More than the processor's 64 may be held: those below are never returned to by compressed
// returns.
class KeyStack {
 public:
  static constexpr std::size_t kCapacity = 1u << 14;

  KeyStack() : entries_(kCapacity) {}
  void clear() { top_ = 1; }
  void push(StateKey key) {
    if (top_ + 1 >= kCapacity) settle();
    entries_[top_++] = key;
  }
  StateKey pop() { return top_ == 1 ? 0 : entries_[--top_]; }
  // Of all that are held, the newest last.
  std::span<StateKey> keys() { return {entries_.data() + 1, top_ - 1}; }

  // The fast path works on the array itself: entry 0 is no state and stays.
  StateKey* data() { return entries_.data(); }
  std::size_t top() const { return top_; }
  void set_top(std::size_t top) { top_ = top; }
  // Makes room again by forgetting what lies deeper than the processor's stack.
  void settle();

 private:
  std::vector<StateKey> entries_;
  std::size_t top_ = 1;
};

}  // namespace tailtrace::pt
