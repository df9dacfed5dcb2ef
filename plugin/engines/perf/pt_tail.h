// PtTail: decodes Intel PT into records and keeps the newest of them only, for a trace unfolds to
// many times its size. Holes that the kernel tells of, and the trace does not, become gaps.
//
// Threading: one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "decoder/perf/aux_holes.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace::perf {

class PtTail final : public pt::Sink {
 public:
  explicit PtTail(std::size_t newest = 0) : newest_(newest) {}

  pt::Detail detail() const override { return pt::Detail::kBranches; }
  void instructions(std::span<const Instruction> run, const pt::RunState& state) override;
  void branches(const pt::BranchRun& run) override;
  // A hole that with_holes() put in is a gap.
  void event(const pt::Event& event) override;
  void gap(const pt::Gap& gap) override { sink_.gap(gap); }
  void lost(GapCause cause) { sink_.lost(cause); }

  // What happened for good.
  const std::vector<BranchRecord>& records() {
    drain();
    return records_;
  }
  std::uint64_t forgotten() const { return forgotten_; }
  // What follows the records when the thread stands there; the tail stays as it is.
  std::vector<BranchRecord> closing(Address pc) const {
    pt::RecordSink copy = sink_;
    return copy.finish(pc);
  }

 private:
  static constexpr std::size_t kDrainEvery = 256;
  void drain_at_times();
  void drain();

  pt::RecordSink sink_;
  std::size_t newest_;
  std::size_t undrained_ = 0;
  std::vector<BranchRecord> records_;
  std::uint64_t forgotten_ = 0;
};

// The trace with a packet for every hole, which PtTail knows again. A hole that does not lie
// between packets (it was overwritten since) is left out.
Bytes with_holes(ByteSpan trace, std::span<const AuxHole> holes);

}  // namespace tailtrace::perf
