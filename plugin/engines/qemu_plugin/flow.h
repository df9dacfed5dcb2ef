// Flow: how a thread's ring is moved from block to block, outside of the fast path. Here is all
// that happens between two blocks that is no plain branch.
//
// The order of stores is part of the format (RING.md): record, run, head, open block. A process may
// be killed between any two of them.
//
// Threading: a Flow lives on the thread whose ring it moves.
#pragma once

#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {

class Flow {
 public:
  explicit Flow(std::uint32_t cpu) : cpu_(cpu), ring_(*ring_of(cpu)) {}

  const RingBlock& open() const {
    return *reinterpret_cast<const RingBlock*>(ring_.open_block.load(std::memory_order_relaxed));
  }
  const BlockInfo& open_info() const { return g_recorder.info_of(cpu_, &open()); }
  RingHeader& ring() { return ring_; }

  // The open block was executed whole, and the instruction at `pc` is next.
  void complete_to(std::uint64_t pc);
  // Of the open block only the first `insns` instructions were executed; the one at `pc` is next.
  void cut_to(std::uint64_t pc, int insns);
  // A signal comes before the instruction at `pc`: a fault is that instruction's, others wait for
  // the end of the open block.
  void interrupt_at(std::uint64_t pc, bool is_fault);
  // A debugger has set the program counter: the instruction at `pc` was next, or faulted.
  void move(std::uint64_t pc, std::uint64_t to, bool is_fault);
  // Something happens at the place where the run stands, and `to` is next.
  void event(std::uint64_t from, std::uint64_t to, RecordKind kind, std::uint16_t extra);
  // The open block, executed whole, will be left as this kind of branch.
  void rename_open(RecordKind kind);
  // The open block was executed whole: the thread comes to the system call at its end.
  void come_to_call();
  // The open block goes on living when the table is cleared.
  void own_open();
  // What follows is not recorded; leaving it will be a gap record.
  void lose(std::uint64_t pc);
  // The next block is entered.
  void enter(const RingBlock* block);

  void take_time() { ring_.time = __builtin_ia32_rdtsc(); }

 private:
  void push(const BranchRecord& record);
  void set_open(const RingBlock& block, const BlockInfo& info);
  void stand_at(std::uint64_t pc);

  std::uint32_t cpu_;
  RingHeader& ring_;
};

}  // namespace tailtrace
