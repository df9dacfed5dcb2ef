// RecordSink: what a PT decoder finds, as BranchRecords.
//
// Recording of user code only is switched off by every system call, interrupt and fault and on
// again behind it. Where the flow goes on where it stood nobody needs to know of that; elsewhere it
// is a system call, or a signal's handler. A loss becomes a record with its cause.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "decoder/pt/decoder.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

class RecordSink final : public Sink {
 public:
  void instructions(std::span<const Instruction> run, const RunState& state) override;
  void event(const Event& event) override;
  void gap(const Gap& gap) override;

  // The thread stands: `pc` is the instruction to be executed next. All records, oldest first; the
  // last is a kDisable at `pc`. The sink is empty afterwards.
  std::vector<BranchRecord> finish(Address pc);

 private:
  void add(const Instruction& insn, const RunState& state);
  void arrive(Address next, RecordKind when_moved);
  void leave(const Event& event);
  void transaction(const Event& event);
  void lose(RecordKind kind, std::uint16_t cause);
  void put(Address from, Address to, RecordKind kind, std::uint8_t flags = 0,
           std::uint16_t extra = 0);
  void put_branch(const Instruction& insn, Address to);

  std::vector<BranchRecord> records_;
  std::optional<Instruction> last_;  // executed last; where it went is not known yet
  std::optional<Address> at_;        // otherwise: where the flow stands
  std::uint32_t insns_ = 0;          // of the run so far
  bool to_is_open_ = false;          // the last record waits for where the flow goes on
  bool outside_ = false;             // the flow left the traced code by a branch of its own
  RunState state_;
};

}  // namespace tailtrace::pt
