// OpenRun: where a thread stands behind its newest record, and the records that close a history
// there. The recorder only knows which block was entered last; how far it came follows from where
// the thread stopped, or from how it ended.
//
// Threading: values and pure functions.
#pragma once

#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/record/ring_format.h"
#include "plugin/engines/engine.h"

namespace tailtrace {

struct OpenRun {
  Position head;            // of the next record
  std::uint64_t insns = 0;  // executed since the newest record, before `block`
  RingBlock block = {};     // entered last
  std::uint64_t time = 0;
  bool waits = false;     // before `block`, of which it has executed nothing
  bool is_whole = false;  // it has executed all of `block`, whose end is a system call

  std::uint32_t block_insns() const { return static_cast<std::uint32_t>(block.tail); }
  // The record that leaving the block for `to` makes.
  BranchRecord left_for(Address to) const;

  friend bool operator==(const OpenRun& a, const OpenRun& b) {
    return a.head == b.head && a.insns == b.insns && a.block.begin == b.block.begin &&
           a.block.tail == b.block.tail && a.block.last == b.block.last &&
           a.block.next == b.block.next && a.waits == b.waits;
  }
};

// One or two records: the branch that is owed, if one is, and the kDisable at the end.
using Closing = std::vector<BranchRecord>;

// The thread is stopped. `code` at `epoch` is what it executes.
Closing close_at_stop(const OpenRun& run, const Engine::Stop& stop, const CodeImage& code,
                      Epoch epoch);

// The thread or process has ended by itself: the open block was executed whole.
Closing close_at_end(const OpenRun& run, EdgeCause cause);

// The process was killed, perhaps between two stores of the recorder, or still runs: `newest` is
// the target of the newest record. Claims no instruction that was not executed, and so of the open
// block only one that ends in a system call which the thread has come to.
Closing close_anywhere(const OpenRun& run, Address newest, const CodeImage& code, Epoch epoch,
                       EdgeCause cause);

}  // namespace tailtrace
