#include "decoder/pt/timing.h"

namespace tailtrace::pt {
namespace {

// MTC carries 8 bits of the crystal clock, TMA its low 16 (SDM, "MTC packet", "TMA packet").
constexpr unsigned kMtcBits = 8;
constexpr unsigned kTmaBits = 16;
constexpr std::uint64_t kTscWrap = 1ull << 56;
constexpr unsigned kMaxMtcPeriod = 15;

}  // namespace

void Clock::take(const Packet& packet, bool in_psb) {
  switch (packet.kind) {
    case PacketKind::kTsc:
      return take_tsc(packet.payload, in_psb);
    case PacketKind::kTma:
      return take_tma(packet.payload & 0xffff, packet.payload >> 16);
    case PacketKind::kMtc:
      return take_mtc(static_cast<std::uint32_t>(packet.payload));
    case PacketKind::kCyc:
      return take_cyc(packet.payload);
    case PacketKind::kCbr:
      return take_cbr(packet.payload, in_psb);
    default:
      return;
  }
}

void Clock::take_tsc(std::uint64_t tsc, bool in_psb) {
  // A TSC in PSB+ follows the one before without a break, so the cycles between them calibrate. Any
  // other says that time may have been lost.
  if (!in_psb) pause();
  std::uint64_t cycles = calibration_.cycles_since_tsc, before = calibration_.tsc;
  calibration_.tsc = tsc;
  calibration_.cycles_since_tsc = 0;
  if (before != 0 && cycles != 0) {
    std::uint64_t passed = tsc - before + (tsc < before ? kTscWrap : 0);
    if (passed >> (64 - kRatioBits) == 0) calibration_.put((passed << kRatioBits) / cycles);
  }
  have_tsc_ = true;
  have_tma_ = have_mtc_ = false;
  tsc_ = base_ = tsc;
  crystal_ = crystal_at_cyc_ = 0;
  since_base_ = 0;
  lost_mtc_ = lost_cyc_ = 0;
}

void Clock::take_tma(std::uint32_t crystal, std::uint64_t fast) {
  // One TMA belongs to one TSC; any other says nothing.
  if (!have_tsc_ || have_tma_ || have_mtc_ || config_.mtc_period > kMaxMtcPeriod) return;
  unsigned mtc_top = config_.mtc_period + kMtcBits;
  have_tma_ = true;
  // The fast counter is how long the crystal's last edge lay back at the TSC.
  base_ -= fast;
  since_base_ += fast;
  // When TMA has all bits that MTC has it stands for one; else the first MTC completes it.
  if (mtc_top <= kTmaBits) have_mtc_ = true;
  crystal_ = crystal_at_cyc_ = crystal & ((1u << mtc_top) - 1);
}

void Clock::take_mtc(std::uint32_t bits) {
  if (config_.mtc_period > kMaxMtcPeriod) return;
  std::uint32_t crystal = bits << config_.mtc_period;
  calibrate_at_mtc(crystal);

  // Between TSC and its TMA nothing tells where in its period the TSC lies.
  if (have_tsc_ && !have_tma_) return;
  std::uint32_t before = crystal_;
  bool had_mtc = have_mtc_;
  if (since_base_ != 0 || lost_cyc_ != 0 || !had_mtc) crystal_at_cyc_ = crystal;
  have_mtc_ = true;
  since_base_ = 0;
  crystal_ = crystal;
  lost_cyc_ = 0;
  if (!had_mtc) {
    // The first MTC of a trace without a TMA only says where we are.
    if (!have_tma_) return;
    std::uint32_t low_mask = (1u << kTmaBits) - 1;
    if ((before & ~low_mask) != 0) return;
    std::uint32_t high = crystal & ~low_mask;
    if ((crystal & low_mask) < before)
      high = (high - (1u << kTmaBits)) & (0xffu << config_.mtc_period);
    before |= high;
  }
  std::uint32_t distance;
  std::uint64_t ticks;
  if (!crystal_distance(crystal, before, distance)) {
    ++lost_mtc_;
    return;
  }
  if (crystal_to_tsc(distance, ticks)) tsc_ = base_ = base_ + ticks;
}

void Clock::calibrate_at_mtc(std::uint32_t crystal) {
  Calibration& c = calibration_;
  bool check = check_skl168_;
  check_skl168_ = false;
  std::uint64_t cycles = c.cycles_since_mtc;
  std::uint32_t before = c.crystal;
  if (!c.have_mtc) {
    c.have_mtc = true;
    c.crystal = crystal;
    c.cycles_since_mtc = 0;
    return;
  }
  if (cycles == 0) return;  // the next MTC measures both periods
  c.crystal = crystal;
  c.cycles_since_mtc = 0;
  std::uint32_t distance;
  std::uint64_t ticks;
  if (!crystal_distance(crystal, before, distance) || !crystal_to_tsc(distance, ticks)) return;
  if (ticks >> (64 - kRatioBits) != 0) return;
  if (check) {
    // SKL168: an MTC, a CYC or both were dropped before the PSB. A period that is too long, or that
    // even a full CYC more would not fill, must not calibrate.
    constexpr std::uint64_t kFullCyc = 0xf00;
    if ((1u << config_.mtc_period) < distance) return;
    if (config_.mtc_period < 10 && c.known() &&
        (c.ratio * (cycles + kFullCyc)) >> kRatioBits < ticks)
      return;
  }
  c.put((ticks << kRatioBits) / cycles);
}

// The first after a TSC or MTC, or without a ratio.
void Clock::take_first_cyc(std::uint64_t cycles) {
  std::uint64_t ratio = ticks_per_cycle_256();
  if (ratio == 0) {
    ++lost_cyc_;
    return;
  }
  if (since_base_ == 0 && !cycles_of_this_period(cycles, ratio)) return;
  since_base_ += (cycles * ratio) >> kRatioBits;
  tsc_ = base_ + since_base_;
}

// A CYC counts from the CYC before it; when MTCs came between, their part is in the time already.
bool Clock::cycles_of_this_period(std::uint64_t& cycles, std::uint64_t ratio) const {
  if (crystal_ == crystal_at_cyc_) return true;
  std::uint32_t distance;
  std::uint64_t ticks;
  if (!crystal_distance(crystal_, crystal_at_cyc_, distance)) return false;
  if (!crystal_to_tsc(distance, ticks)) return false;
  std::uint64_t accounted = (ticks << kRatioBits) / ratio;
  cycles = cycles < accounted ? 0 : cycles - accounted;
  return true;
}

void Clock::take_cbr(std::uint64_t ratio, bool in_psb) {
  // Outside PSB+ it says that the frequency changed: what was measured is void.
  if (!in_psb) calibration_ = Calibration{};
  if (config_.nominal_ratio != 0 && ratio != 0)
    calibration_.put((std::uint64_t{config_.nominal_ratio} << kRatioBits) / ratio);
}

// The crystal clock wraps at the highest bit that MTC has; one wrap can be told.
bool Clock::crystal_distance(std::uint32_t now, std::uint32_t before,
                             std::uint32_t& distance) const {
  if (now < before) now += 1u << (config_.mtc_period + kMtcBits);
  distance = now - before;
  return now >= before;
}

bool Clock::crystal_to_tsc(std::uint64_t crystal, std::uint64_t& ticks) const {
  if (config_.cpuid_15_eax == 0 || config_.cpuid_15_ebx == 0) return false;
  ticks = crystal * config_.cpuid_15_ebx / config_.cpuid_15_eax;
  return true;
}

}  // namespace tailtrace::pt
