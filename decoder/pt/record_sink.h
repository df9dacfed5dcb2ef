// RecordSink: what a PT decoder finds, as BranchRecords.
//
//   [disabled] behind a system call, [enabled]     the system call's record, to where it came back
//   [disabled], [enabled] where a branch went      the branch's record
//   [disabled] between instructions, [resumed]     kInterrupt that came back to where it was
//   any other [disabled], [enabled]                kDisable, kEnable
//   [interrupt]                                    kInterrupt
//   [overflow]                                     kOverflow
//   what could not be decoded                      kGap
//   transactions                                   begin, commit, abort
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
  void instructions(std::span<const Instruction> run, const RunState& state) override;
  void event(const Event& event) override;
  void gap(const Gap& gap) override;

  // The records that are complete so far; they are handed over and forgotten.
  std::vector<BranchRecord> drain();

  // Closes the history where the trace ended; drain() has the rest.
  void finish();

 private:
  // Something that took the flow away; its record waits for where it goes on.
  struct Away {
    BranchRecord record;
    std::optional<Instruction> by;  // the instruction that did it, if one did
    Address told_to;                // where the trace says it went; 0 unknown
  };

  void arrive(Address ip);
  void come_back(Address ip);
  void disabled(const Event& event);
  void overflow(const Event& event);
  void transaction(const Event& event);
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
  bool time_exact_ = false;
  bool in_transaction_ = false;
  bool aborted_ = false;  // the next asynchronous branch aborts a transaction
};

}  // namespace tailtrace::pt
