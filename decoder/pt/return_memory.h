// ReturnMemory: the return addresses that a processor remembers for return compression (SDM volume
// 3, "Return Compression"): 64 of them, the oldest falls off.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <optional>

#include "decoder/base/types.h"

namespace tailtrace::pt {

class ReturnMemory {
 public:
  static constexpr unsigned kEntries = 64;

  void clear() { count_ = 0; }
  void push(Address ip) {
    top_ = (top_ + 1) % kEntries;
    entries_[top_] = ip;
    if (count_ < kEntries) ++count_;
  }
  bool empty() const { return count_ == 0; }
  // REQUIRES: not empty.
  Address top() const { return entries_[top_]; }
  Address pop() {
    Address ip = entries_[top_];
    top_ = (top_ + kEntries - 1) % kEntries;
    --count_;
    return ip;
  }

 private:
  std::array<Address, kEntries> entries_{};
  unsigned top_ = 0;
  unsigned count_ = 0;
};

}  // namespace tailtrace::pt
