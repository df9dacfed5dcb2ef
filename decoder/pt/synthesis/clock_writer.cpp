#include "decoder/pt/synthesis/clock_writer.h"

#include <algorithm>

namespace tailtrace::pt {

std::uint64_t ClockWriter::ticks(std::uint64_t crystal) const {
  auto product = static_cast<unsigned __int128>(crystal) * config_.cpuid_15_ebx;
  return static_cast<std::uint64_t>((product + config_.cpuid_15_eax - 1) / config_.cpuid_15_eax);
}

void ClockWriter::tell(std::uint64_t time) {
  if (timing_ == SynthesisTiming::kNone || time <= time_) return;
  out_.flush();
  bool first = time_ == 0;
  std::uint64_t before = time_;
  time_ = time;
  if (timing_ == SynthesisTiming::kTsc) return out_.tsc(time);
  if (first || period(time) - period(before) > kMaxPeriods) {
    if (!first) count_cycles(time);
    return anchor();
  }
  for (std::uint64_t p = period(before) + 1; p <= period(time); ++p) {
    count_cycles(ticks(p << config_.mtc_period));
    out_.mtc(static_cast<std::uint8_t>(p));
  }
  count_cycles(time);
}

void ClockWriter::count_cycles(std::uint64_t time) {
  if (timing_ != SynthesisTiming::kCyc) return;
  while (counted_ < time) {
    const std::uint64_t cycles = std::min(time - counted_, PacketWriter::kMaxCycles);
    out_.cyc(cycles);
    counted_ += cycles;
  }
}

void ClockWriter::before_sync() {
  if (time_ == 0 || !has_mtc()) return;
  out_.flush();
  count_cycles(time_);
}

void ClockWriter::sync() {
  if (timing_ == SynthesisTiming::kNone || time_ == 0) return;
  anchor();
}

// TSC, and where in its period the crystal clock is; the frequency that cycles have.
void ClockWriter::anchor() {
  out_.tsc(time_);
  counted_ = time_;
  if (!has_mtc()) return;
  std::uint64_t fast = time_ - ticks(crystal(time_));
  out_.tma(static_cast<std::uint16_t>(crystal(time_)), static_cast<std::uint16_t>(fast));
  out_.cbr(config_.nominal_ratio);
}

}  // namespace tailtrace::pt
