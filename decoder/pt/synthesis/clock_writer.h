// ClockWriter: the timing packets of a synthesised trace, from the times of its records.
//
// Threading: one thread at a time; the packet writer must outlive it.
#pragma once

#include <cstdint>

#include "decoder/pt/decoder.h"
#include "decoder/pt/packets/packet_writer.h"

namespace tailtrace::pt {

enum class SynthesisTiming : std::uint8_t {
  kNone,
  kTsc,  // a TSC packet wherever the time changes: exact, large
  kMtc,  // TSC and TMA at each PSB, MTC in between: as exact as the MTC period
  kCyc,  // the same and CYC: exact, as a processor can do it
};

class ClockWriter {
 public:
  // REQUIRES for kMtc and kCyc: all of `config` is set, with an mtc_period of 15 at most. Core
  // cycles are taken to be TSC ticks.
  ClockWriter(PacketWriter& out, SynthesisTiming timing, const TimingConfig& config)
      : out_(out), timing_(timing), config_(config) {}

  // The time at which the trace begins. REQUIRES: before all else.
  void begin(std::uint64_t time) { time_ = time; }

  // What must be sent before a packet of this time. Times that do not grow, and 0, say nothing.
  void tell(std::uint64_t time);

  // Before a PSB.
  void before_sync();
  // Inside PSB+: what the time is.
  void sync();

 private:
  // More periods than this at once are told by a TSC.
  static constexpr std::uint64_t kMaxPeriods = 16;

  bool has_mtc() const {
    return timing_ == SynthesisTiming::kMtc || timing_ == SynthesisTiming::kCyc;
  }
  std::uint64_t crystal(std::uint64_t time) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(time) * config_.cpuid_15_eax /
                                      config_.cpuid_15_ebx);
  }
  // The first tick at which the crystal clock shows `crystal`.
  std::uint64_t ticks(std::uint64_t crystal) const;
  std::uint64_t period(std::uint64_t time) const { return crystal(time) >> config_.mtc_period; }
  void anchor();
  void count_cycles(std::uint64_t time);

  PacketWriter& out_;
  SynthesisTiming timing_;
  TimingConfig config_;
  std::uint64_t time_ = 0;
  std::uint64_t counted_ = 0;  // the time up to which CYCs counted
};

}  // namespace tailtrace::pt
