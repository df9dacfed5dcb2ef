// RunReader: from records to straight runs of instructions, each held against the code.
//
// A record says how many instructions were executed since the one before it, and where that run
// ended. The reader follows the run through the code and believes neither blindly: where they
// contradict each other, or the code is not known, it says so instead of guessing. What one record
// contributes to a history follows from the record and the FlowState before it alone, so that a
// history can be entered at any record whose state was kept.
//
// Threading: one thread at a time. The image must outlive the reader.
#pragma once

#include <vector>

#include "decoder/code/code_reader.h"
#include "decoder/history/gap.h"
#include "decoder/record/branch_record.h"

namespace tailtrace {

// What is known of the flow between two records.
struct FlowState {
  enum class Place : std::uint8_t {
    kUnknown,  // nobody knows which instruction is next
    kRunning,  // the one at `at` is
    kPaused,   // the one at `at` would be, had recording not been switched off
  };

  Address at;
  Epoch epoch;
  Place place = Place::kUnknown;
  GapReason last_gap = GapReason::kStart;  // kNone: the last thing shown is an instruction
};
static_assert(sizeof(FlowState) == 16);

// What one record contributes: instructions, then one gap at most.
struct Step {
  Address start;            // of the instructions
  std::uint64_t shown = 0;  // instructions
  Gap gap;                  // `lost` also counts when the gap belongs to an earlier record
  bool has_gap = false;     // a gap of its own
  Epoch epoch;              // of the instructions

  std::uint64_t items() const { return shown + (has_gap ? 1 : 0); }
};

// So many runs are worth remembering to whoever follows all records, and meets the same again.
constexpr std::size_t kFollowedRuns = 1 << 13;

class RunReader {
 public:
  // Remembers so many runs that agreed with the code: loops ask the same again and again.
  // REQUIRES: at least one.
  RunReader(const CodeImage& image, std::size_t remembered_runs);

  // The record's contribution; `state` moves behind it. A run of more than `limit_insns` is not
  // followed but becomes a gap: a corrupt file may claim billions.
  Step advance(FlowState& state, const BranchRecord& record, std::uint64_t limit_insns);

  // Instructions followed so far: the work done.
  std::uint64_t walked_insns() const { return walked_insns_; }

  // The code as the reader sees it; its epoch is set by whoever reads.
  CodeReader& code() { return code_; }

 private:
  // How far a record's run agrees with the code.
  struct Check {
    std::uint64_t shown = 0;  // instructions from the start that were surely executed
    GapReason reason = GapReason::kNone;
    Address at;  // of the trouble
  };
  struct Remembered {
    BranchRecord record;
    Address start;
    Epoch epoch;
    Check check;
    bool used = false;
  };

  Check check(const FlowState& state, const BranchRecord& record, std::uint64_t limit_insns);
  Check walk(Address start, const BranchRecord& record);
  Step edge(FlowState& state, const BranchRecord& record);
  Step run(FlowState& state, const BranchRecord& record, std::uint64_t limit_insns);

  CodeReader code_;
  std::vector<Remembered> remembered_;
  std::uint64_t walked_insns_ = 0;
};

}  // namespace tailtrace
