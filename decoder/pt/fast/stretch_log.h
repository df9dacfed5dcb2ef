// StretchLog: a decoded trace cut into stretches, each from where tracing went on to where it
// ended, with the time of its begin: what one CPU did in one go is what one thread did. A stretch
// is kept as branch records, and played back into whoever gathers the history of its thread.
//
// Threading: one thread at a time.
#pragma once

#include <variant>
#include <vector>

#include "decoder/pt/record_sink.h"
#include "decoder/pt/tail.h"

namespace tailtrace::pt {

class StretchLog final : public Sink {
 public:
  // Beyond so many branches, 32 bytes each, the oldest stretches are forgotten.
  static constexpr std::size_t kMostRecords = 1u << 23;
  explicit StretchLog(std::size_t most_records = kMostRecords) : most_records_(most_records) {}

  void instructions(std::span<const Instruction> run, const RunState& state) override;
  void event(const Event& event) override;
  void gap(const Gap& gap) override;
  // REQUIRES: called once, when all is decoded.
  void finish() { close_part(); }

  struct Stretch {
    std::uint64_t time = 0;  // of the hardware's clock, at its begin; 0 unknown
    std::size_t first = 0, count = 0;
  };
  const std::vector<Stretch>& stretches() const { return stretches_; }
  bool forgot() const { return forgot_; }

  void play(const Stretch& stretch, Tail& into) const;

 private:
  // Instructions one behind the other. Where the last of them led is known to whoever gathers, by
  // what comes behind: it stands for itself.
  struct Part {
    Address begin;
    std::vector<BranchRecord> records;
    std::uint32_t open_insns = 0;
    RunState state;
    Instruction last;
  };
  using Entry = std::variant<Part, Event, Gap>;

  void add(Entry entry);
  void close_part();
  void forget_half();

  std::size_t most_records_;
  std::size_t records_ = 0;
  bool forgot_ = false;
  bool in_part_ = false;
  Address begin_;
  Instruction last_;
  RunState state_;  // of the last instruction
  RecordSink sink_;
  std::vector<Entry> entries_;
  std::vector<Stretch> stretches_;
};

}  // namespace tailtrace::pt
