// RunPlanner: how far the code agrees with a record, and what the record's straight run means to a
// PT encoder. Answers are remembered: programs run the same code again and again.
//
// Threading: one thread at a time; the image must outlive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "decoder/code/code_reader.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

// A straight run from `begin` to `from`; `from` is executed unless the record is asynchronous.
struct RunPlan {
  Address begin;
  Address from;
  std::uint32_t insns = 0;
  bool async = false;
  bool arrives = false;  // the code leads from `begin` to `from` in `insns` instructions

  // What can be shown: everything when it arrives, else what comes before `stop`.
  Address stop;                 // the first instruction not to be shown
  std::uint32_t not_taken = 0;  // conditional branches passed on the way
  Address after_last_bit;       // the instruction behind the last of them; `begin` without any

  // The instruction at `from`. Its size is zero when it is not known.
  Instruction last;

  // Behind the last byte that is executed; of an instruction that is not known, behind its first.
  Address end() const { return async ? from : from + std::max<std::uint64_t>(last.size_bytes, 1); }
  void show_nothing();
};

class RunPlanner {
 public:
  // Longer runs are not followed; real code is far from it.
  static constexpr std::uint32_t kMaxRun_insns = 1u << 20;

  // `expected` runs or more will be asked for: decides how much is remembered.
  RunPlanner(const CodeImage& image, CodeMode mode, std::size_t expected);

  void set_epoch(Epoch epoch);
  Epoch epoch() const { return reader_.epoch(); }

  // The plan lives until the next call.
  const RunPlan& plan(Address begin, const BranchRecord& record) {
    RunPlan& slot = slots_[slot_of(begin, record.from)];
    if (slot.begin != begin || slot.from != record.from || slot.insns != record.insns ||
        slot.async != record.is_async())
      make(slot, begin, record);
    return slot;
  }

  std::optional<Instruction> at(Address address) { return reader_.at(address); }

 private:
  // A direct-mapped memory: a collision only costs walking the run again.
  static constexpr std::size_t kMinSlots = 1 << 6;
  static constexpr std::size_t kMaxSlots = 1 << 15;
  std::size_t slot_of(Address begin, Address from) const {
    std::uint64_t mix = begin.value * 0x9e3779b97f4a7c15ull + from.value * 0xc2b2ae3d27d4eb4full;
    return (mix >> 40) & (slots_.size() - 1);
  }
  void make(RunPlan& plan, Address begin, const BranchRecord& record);
  void walk(RunPlan& plan);

  CodeReader reader_;
  std::vector<RunPlan> slots_;
};

}  // namespace tailtrace::pt
