// RecordSink: what a PT decoder finds, as BranchRecords.
//
// Recording of user code only is switched off by every system call, interrupt and fault, and on
// again behind it. Where the flow goes on where it stood nobody needs to know of that.
//
//   disabled by a system call, enabled             the system call's record, to where it came back
//   disabled and enabled where a branch went       the branch's record
//   disabled between instructions, enabled there   nothing
//   the same, enabled elsewhere                    kSignal: a handler, as far as anybody can tell
//   disabled by another branch, enabled elsewhere  kDisable, kEnable: a filter
//   asynchronous branch                            kInterrupt, kTransactionAbort
//   overflow                                       kOverflow, from where the flow was last known
//   what could not be decoded                      kGap, likewise
//   transactions                                   kTransactionBegin, kTransactionCommit
//
// The time of a record is that of the packet that told the branch.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

class RecordSink final : public Sink {
 public:
  Detail detail() const override { return Detail::kBranches; }
  void branches(const BranchRun& run) override;
  void instructions(std::span<const Instruction> run, const RunState& state) override;
  void event(const Event& event) override;
  void gap(const Gap& gap) override;

  // The records that are complete so far; they are handed over and forgotten.
  std::vector<BranchRecord> drain();

  // Something is missing here for a reason that the trace does not tell.
  void lost(GapCause cause);

  // The flow goes on at `ip` in other hands, as the fast path's. Returns the instructions executed
  // since the last record.
  std::uint32_t hand_over(Address ip);
  // It comes back at `ip`, with `insns` instructions executed since the last record.
  void take_back(Address ip, std::uint32_t insns, const RunState& state);

  // The last that is known; 0 unknown.
  std::uint64_t time() const { return time_; }

  // Closes the history where the trace ended; drain() has the rest.
  void finish();

  // Closes the history where the thread stands: `pc` is the instruction to be executed next. All
  // records that are not drained, oldest first; the last is a kDisable at `pc`.
  std::vector<BranchRecord> finish(Address pc);

 private:
  // Something that took the flow away; its record waits for where it goes on.
  struct Away {
    BranchRecord record;
    std::optional<Instruction> by;  // the instruction that did it, if one did
    Address told_to;                // where the trace says it went; 0 unknown
  };

  void arrive(Address ip);
  void come_back(Address ip);
  void come_back_from(const Away& away, Address ip);
  void disabled(const Event& event);
  void overflow(const Event& event);
  void transaction(const Event& event);
  void tell_time(const Event& event);
  BranchRecord position(RecordKind kind) const;
  BranchRecord make(Address from, Address to, RecordKind kind, std::uint8_t flags) const;
  void add(const BranchRecord& record);

  std::vector<BranchRecord> records_;
  bool running_ = false;               // the flow is known to be at `at_`, or behind `newest_`
  Address at_;                         // executed next, as long as nothing was executed since
  std::optional<Instruction> newest_;  // executed, and not yet told where it led
  std::optional<Away> away_;
  std::uint32_t insns_ = 0;  // since the last record
  std::uint64_t time_ = 0;
  std::uint64_t told_time_ = 0;  // by an event behind `newest_`; 0 none
  bool time_exact_ = false;
  bool in_transaction_ = false;
  bool aborted_ = false;  // the next asynchronous branch aborts a transaction
};

}  // namespace tailtrace::pt
