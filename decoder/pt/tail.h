// Tail: what a PT decoder finds as records, of which the newest are kept only, for a trace unfolds
// to many times its size. Holes that the kernel tells of, and the trace does not, become gaps;
// where an epoch of the code begins there is a record of it.
//
// Threading: one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "decoder/perf/aux_holes.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace::pt {

// From a time on an epoch of the code holds.
struct EpochBegin {
  std::uint64_t time = 0;  // of the hardware's clock
  Epoch epoch;
};

// What stands for a hole that the kernel told of, by the flags of its record; kAuxOverwrite alone:
// it was overwritten before it was read.
GapCause cause_of_hole(std::uint64_t aux_flags);

class Tail final : public Sink {
 public:
  // `changes`: where the code's epochs begin, by time, as the decoder is told of them; the first
  // record belongs to `first`, or to what has begun by its time.
  explicit Tail(std::size_t newest = 0, std::vector<EpochBegin> changes = {}, Epoch first = {})
      : newest_(newest), changes_(std::move(changes)), first_epoch_(first) {}

  Detail detail() const override { return Detail::kBranches; }
  void instructions(std::span<const Instruction> run, const RunState& state) override;
  void branches(const BranchRun& run) override;
  // A hole that with_holes() put in is a gap.
  void event(const Event& event) override;
  void gap(const Gap& gap) override { sink_.gap(gap); }
  void lost(GapCause cause) { sink_.lost(cause); }

  // What happened for good.
  const std::vector<BranchRecord>& records() {
    drain();
    return records_;
  }
  std::uint64_t forgotten() const { return forgotten_; }
  // Of the oldest record that records() returned last.
  Epoch first_epoch() const { return first_epoch_; }
  // What follows the records when the thread stands there; the tail stays as it is.
  std::vector<BranchRecord> closing(Address pc) const {
    RecordSink copy = sink_;
    return behind(copy.finish(pc));
  }
  // What follows them when nothing else is known than that the trace ends there.
  std::vector<BranchRecord> ending() const {
    RecordSink copy = sink_;
    copy.finish();
    return behind(copy.drain());
  }

 private:
  static constexpr std::size_t kDrainEvery = 256;
  void drain_at_times();
  void drain();
  void add(const std::vector<BranchRecord>& more);
  // `more` with the epochs that begin meanwhile.
  std::vector<BranchRecord> behind(const std::vector<BranchRecord>& more) const;
  void begin_epochs(std::uint64_t time);

  RecordSink sink_;
  std::size_t newest_;
  std::size_t undrained_ = 0;
  std::vector<BranchRecord> records_;
  std::uint64_t forgotten_ = 0;
  std::vector<EpochBegin> changes_;
  std::size_t begun_ = 0;  // of those
  Epoch first_epoch_;
};

// What a decoder tells where with_holes() put one in.
Event hole_event(std::uint64_t aux_flags);

// For the decoder: the same changes, all of the trace.
std::vector<CodeChange> code_changes(std::span<const EpochBegin> begins);

// The trace with a packet for every hole, which a Tail knows again. A hole that does not lie
// between packets (it was overwritten since) is left out.
Bytes with_holes(ByteSpan trace, std::span<const perf::AuxHole> holes);

}  // namespace tailtrace::pt
