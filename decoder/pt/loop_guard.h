// LoopGuard: knows where a decoder could take one visit of an instruction for another.
//
// Between two packets that steer it a decoder follows straight code, jumps and calls by itself. An
// asynchronous event is bound to an address; a decoder applies it when it first comes there. In a
// loop of nothing but jumps (a spinning `jmp` to itself, a recursion without a condition) the
// first visit need not be the right one, and the packets of an encoder must say more.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <cstddef>

#include "decoder/base/types.h"

namespace tailtrace::pt {

class LoopGuard {
 public:
  // After so many runs without a steering packet the encoder sends one on its own account.
  static constexpr std::size_t kRuns = 16;

  // A steering packet was sent.
  void clear() { count_ = 0; }

  // A run that a decoder follows by itself. REQUIRES: !full().
  void add(Address begin, Address last) { runs_[count_++] = {begin, last}; }

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kRuns; }

  // Whether any of [begin, last] was passed since the last steering packet.
  bool overlaps(Address begin, Address last) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (begin <= runs_[i].last && runs_[i].begin <= last) return true;
    return false;
  }
  bool passed(Address ip) const { return overlaps(ip, ip); }

  // Whether an earlier jump since the last steering packet went to `ip`.
  bool entered(Address ip) const {
    for (std::size_t i = 1; i < count_; ++i)
      if (runs_[i].begin == ip) return true;
    return false;
  }
  // The branch that ended the newest run. REQUIRES: !empty().
  Address newest_branch() const { return runs_[count_ - 1].last; }

 private:
  struct Run {
    Address begin;
    Address last;
  };
  std::array<Run, kRuns> runs_;
  std::size_t count_ = 0;
};

}  // namespace tailtrace::pt
