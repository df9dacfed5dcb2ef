// Clock: the time of a trace, from its TSC, TMA, MTC, CYC and CBR packets.
//
// TSC packets are rare and exact; MTC packets are frequent and give a few bits of the crystal
// clock; CYC packets count core cycles. The clock joins them: TSC + TMA anchor the crystal clock,
// MTC moves it on, and CYC is scaled by the ratio of TSC ticks to core cycles, which CBR gives at
// once and MTC and TSC give by measuring. (SDM volume 3, "Intel Processor Trace", "Timing
// packets".)
//
// Where a packet cannot be used - no TSC yet, no configuration, lost packets - the clock stands
// still and says so; it never guesses.
//
// Threading: a value.
#pragma once

#include <cstdint>

#include "decoder/pt/decoder.h"
#include "decoder/pt/packets/packet.h"

namespace tailtrace::pt {

// An estimate may run ahead of the packet that corrects it; time must not go back for that. A
// larger step back is none of an estimate.
constexpr std::uint64_t kMaxOvershoot = 1u << 24;

// The time of what comes behind `before`.
constexpr std::uint64_t not_before(std::uint64_t before, std::uint64_t ticks) {
  bool overshot = ticks < before && before - ticks < kMaxOvershoot;
  return overshot ? before : ticks;
}

// The time that a packet carries; `exact` when it has one of its own.
struct PacketTime {
  std::uint64_t ticks = 0;  // 0 unknown
  bool exact = false;
};

class Clock {
 public:
  Clock() = default;
  explicit Clock(const TimingConfig& config, bool skl168 = false)
      : config_(config), skl168_(skl168) {}

  // Takes a packet of a timing kind. `in_psb`: it is part of PSB+.
  void take(const Packet& packet, bool in_psb);

  // The same as take() of a CYC packet: it comes with every other packet where it comes at all.
  void take_cyc(std::uint64_t cycles) {
    calibration_.cycles_since_mtc += cycles;
    calibration_.cycles_since_tsc += cycles;
    if (calibration_.ratio == 0 || since_base_ == 0) return take_first_cyc(cycles);
    since_base_ += (cycles * calibration_.ratio) >> kRatioBits;
    tsc_ = base_ + since_base_;
  }

  void take_mtc(std::uint32_t bits);

  // A PSB was met: its erratum SKL168 concerns the next MTC.
  void psb() { check_skl168_ = skl168_; }

  // Tracing may have been off altogether: who knows whether cycles were counted meanwhile.
  void pause() { calibration_.begin_anew(); }

  // Data was lost: what was measured for calibration is void, the time stays.
  void overflow() { calibration_ = Calibration{}; }

  // All is forgotten, as at the beginning of a trace.
  void reset() { *this = Clock(config_, skl168_); }

  // TSC ticks. Before the first TSC packet: ticks since the first timing packet.
  std::uint64_t ticks() const { return tsc_; }
  bool known() const { return have_tsc_; }
  // 0 while they are not.
  std::uint64_t known_ticks() const { return known() ? ticks() : 0; }

  // Packets that could not be used since the last TSC: how far `ticks` may lag.
  std::uint32_t lost_mtc() const { return lost_mtc_; }
  std::uint32_t lost_cyc() const { return lost_cyc_; }

  // TSC ticks per core cycle in 1/256; 0 unknown.
  std::uint64_t ticks_per_cycle_256() const { return calibration_.ratio; }

 private:
  // Ratio of TSC ticks to core cycles, 8 fraction bits.
  static constexpr unsigned kRatioBits = 8;
  struct Calibration {
    std::uint64_t ratio = 0;  // 0 while it is not known
    std::uint64_t tsc = 0;    // at the last TSC packet
    std::uint64_t cycles_since_tsc = 0;
    std::uint64_t cycles_since_mtc = 0;
    std::uint32_t crystal = 0;  // at the last MTC that was used
    bool have_mtc = false;

    bool known() const { return ratio != 0; }
    void put(std::uint64_t value) { ratio = value; }
    // Measures from the next TSC and MTC on.
    void begin_anew() { *this = Calibration{.ratio = ratio}; }
  };

  void take_tsc(std::uint64_t tsc, bool in_psb);
  void take_tma(std::uint32_t crystal, std::uint64_t fast);
  void take_first_cyc(std::uint64_t cycles);
  void take_cbr(std::uint64_t ratio, bool in_psb);
  void calibrate_at_mtc(std::uint32_t crystal);
  bool crystal_distance(std::uint32_t now, std::uint32_t before, std::uint32_t& distance) const;
  bool crystal_to_tsc(std::uint64_t crystal, std::uint64_t& ticks) const;
  bool cycles_of_this_period(std::uint64_t& cycles, std::uint64_t ratio) const;

  TimingConfig config_;
  bool skl168_ = false;
  bool check_skl168_ = false;

  bool have_tsc_ = false;
  bool have_tma_ = false;
  bool have_mtc_ = false;
  std::uint64_t tsc_ = 0;             // the estimate
  std::uint64_t base_ = 0;            // the TSC at the last TSC or MTC
  std::uint64_t since_base_ = 0;      // TSC ticks since then, from CYC
  std::uint32_t crystal_ = 0;         // crystal clock at the last MTC or TMA
  std::uint32_t crystal_at_cyc_ = 0;  // the same at the last CYC
  std::uint32_t lost_mtc_ = 0;
  std::uint32_t lost_cyc_ = 0;
  Calibration calibration_;
};

}  // namespace tailtrace::pt
