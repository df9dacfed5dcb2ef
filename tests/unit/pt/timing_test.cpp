// The clock against times that are known: by hand for each packet, and from a model of a processor
// that writes the packets of a clock it knows.
#include "decoder/pt/timing.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder/pt/flow/flow.h"
#include "decoder/pt/packets/packet_writer.h"
#include "decoder/pt/segments/segments.h"

namespace tailtrace::pt {
namespace {

// 64 TSC ticks for a tick of the crystal, an MTC each 8 of those, 30 bus cycles nominally.
constexpr TimingConfig kConfig{1, 64, 3, 30};

struct Stream {
  Clock clock{kConfig};

  Stream& take(PacketKind kind, std::uint64_t payload, bool in_psb = false) {
    Packet packet;
    packet.kind = kind;
    packet.payload = payload;
    clock.take(packet, in_psb);
    return *this;
  }
  Stream& tsc(std::uint64_t ticks) { return take(PacketKind::kTsc, ticks); }
  Stream& psb_tsc(std::uint64_t ticks) { return take(PacketKind::kTsc, ticks, true); }
  Stream& tma(std::uint64_t crystal, std::uint64_t fast) {
    return take(PacketKind::kTma, crystal | fast << 16);
  }
  Stream& mtc(std::uint64_t crystal) { return take(PacketKind::kMtc, crystal >> 3 & 0xff); }
  Stream& cyc(std::uint64_t cycles) { return take(PacketKind::kCyc, cycles); }
  Stream& cbr(std::uint64_t ratio) { return take(PacketKind::kCbr, ratio); }
};

TEST(Timing, ATscSaysIt) {
  Stream s;
  EXPECT_FALSE(s.clock.known());
  s.tsc(10000);
  EXPECT_TRUE(s.clock.known());
  EXPECT_EQ(s.clock.ticks(), 10000u);
}

TEST(Timing, AnMtcCountsFromTheEdgeThatTmaTells) {
  Stream s;
  s.tsc(10000).tma(0x100, 5).mtc(0x108);
  EXPECT_EQ(s.clock.ticks(), 10000u - 5 + 8 * 64);
  s.mtc(0x118);  // one was lost
  EXPECT_EQ(s.clock.ticks(), 10000u - 5 + 24 * 64);
}

TEST(Timing, TheBitsOfAnMtcWrap) {
  Stream s;
  s.tsc(10000).tma(0x7f8, 0).mtc(0x800);
  EXPECT_EQ(s.clock.ticks(), 10000u + 8 * 64);
}

TEST(Timing, AnMtcWithoutTmaBehindTscSaysNothing) {
  Stream s;
  s.tsc(10000).mtc(0x108);
  EXPECT_EQ(s.clock.ticks(), 10000u);
}

TEST(Timing, CyclesAreScaledByTheRatioOfCbr) {
  Stream s;
  s.tsc(10000).cbr(15).cyc(10);
  EXPECT_EQ(s.clock.ticks(), 10020u);
  s.cbr(30).cyc(10);
  EXPECT_EQ(s.clock.ticks(), 10030u);
}

TEST(Timing, CyclesThatNothingScalesStandStill) {
  Stream s;
  s.tsc(10000).cyc(10);
  EXPECT_EQ(s.clock.ticks(), 10000u);
  EXPECT_EQ(s.clock.lost_cyc(), 1u);
}

TEST(Timing, TwoMtcsCalibrateTheCyclesBetweenThem) {
  Stream s;
  s.tsc(10000).tma(0x100, 0).mtc(0x108).cyc(256).mtc(0x110).cyc(4);
  EXPECT_EQ(s.clock.ticks(), 10000u + 16 * 64 + 4 * 2);
}

TEST(Timing, MtcsBeforeTheFirstTscCalibrateForIt) {
  Stream s;
  s.mtc(0x100).cyc(256).mtc(0x108);
  EXPECT_FALSE(s.clock.known());
  s.tsc(10000).cyc(4);
  EXPECT_EQ(s.clock.ticks(), 10008u);
}

TEST(Timing, TscsOfTwoPsbsCalibrateTheCyclesBetweenThem) {
  Stream s;
  s.psb_tsc(10000).cyc(100).psb_tsc(10400);
  EXPECT_EQ(s.clock.ticks(), 10400u);
  s.cyc(3);
  EXPECT_EQ(s.clock.ticks(), 10412u);
}

TEST(Timing, ATscOutsideOfPsbEndsWhatTwoMtcsMeasure) {
  Stream s;
  s.tsc(10000).tma(0x100, 0).mtc(0x108).cyc(256).tsc(50000).tma(0x371, 0).mtc(0x378).cyc(4);
  EXPECT_EQ(s.clock.ticks(), 50000u + 7 * 64);
  EXPECT_EQ(s.clock.lost_cyc(), 1u);
}

TEST(Timing, AnOverflowVoidsTheCalibration) {
  Stream s;
  s.tsc(10000).cbr(15).cyc(10);
  s.clock.overflow();
  s.cyc(10);
  EXPECT_EQ(s.clock.ticks(), 10020u);
}

TEST(Timing, WithoutConfigurationMtcIsNotUsed) {
  Stream s;
  s.clock = Clock(TimingConfig{});
  s.tsc(10000).tma(0x100, 0).mtc(0x108);
  EXPECT_EQ(s.clock.ticks(), 10000u);
}

// --- A model ---------------------------------------------------------------------------------

// A processor at half its nominal frequency runs "jmp rax" at 0x1000 to itself.
class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {}

  Bytes trace;
  std::vector<std::uint64_t> times;  // of the jumps

  void psb() {
    header();
    raw({0x7d, 0x00, 0x10, 0, 0, 0, 0, 0x02, 0x23});
  }
  // The kernel takes over and switches tracing off for long; no cycles are counted meanwhile.
  void sleep() {
    raw({0x3d, 0x00, 0x10, 0x01});
    tsc_ += 2 * (random_() % 1000000);
    header();
    raw({0x02, 0x23, 0x31, 0x00, 0x10});
  }
  // A processor sends its cycles before an MTC too.
  void jump() {
    std::uint64_t target = tsc_ + 2 * (1 + random_() % 300);
    constexpr std::uint64_t kMtcTicks = 8 * 64;
    for (std::uint64_t edge; (edge = (tsc_ / kMtcTicks + 1) * kMtcTicks) <= target;) {
      cyc(edge);
      raw({0x59, static_cast<std::uint8_t>(edge / kMtcTicks)});
    }
    if (target != tsc_) cyc(target);
    raw({0x2d, 0x00, 0x10});
    times.push_back(tsc_);
  }

 private:
  // PSB+ up to where tracing is, if it is on.
  void header() {
    for (int i = 0; i < 8; ++i) raw({0x02, 0x82});
    raw({0x19});
    little(tsc_, 7);
    raw({0x02, 0x73});  // TMA: the crystal, a byte of nothing, the fast counter
    little(tsc_ / 64 & 0xffff, 2);
    raw({0});
    little(tsc_ % 64, 2);
    raw({0x02, 0x03, 15, 0, 0x99, 0x01});
  }
  void raw(std::initializer_list<std::uint8_t> bytes) { trace.insert(trace.end(), bytes); }
  void little(std::uint64_t value, int size_bytes) {
    for (int i = 0; i < size_bytes; ++i) trace.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  }
  void cyc(std::uint64_t until) {
    std::uint64_t cycles = (until - tsc_) / 2;
    tsc_ = until;
    bool longer = cycles >= 32;
    raw({static_cast<std::uint8_t>((cycles & 31) << 3 | (longer ? 4 : 0) | 3)});
    if (longer) raw({static_cast<std::uint8_t>(cycles >> 5 << 1)});
  }

  std::mt19937_64 random_;
  std::uint64_t tsc_ = 1u << 20;
};

class TimedJumps : public testing::Test {
 protected:
  TimedJumps() {
    EXPECT_TRUE(code_.add({0x1000}, Bytes{0xff, 0xe0}));
    config_.timing = kConfig;
    jump(true);
  }

  void jump(bool sleeps) {
    model_ = Model(42);
    for (int i = 0; i < 5000; ++i) {
      if (i % 700 == 0) model_.psb();
      if (sleeps && i % 300 == 150) model_.sleep();
      model_.jump();
    }
  }

  void expect_times(const std::vector<BranchRecord>& records) const {
    std::size_t jump = 0;
    for (const BranchRecord& record : records) {
      if (record.kind != RecordKind::kIndirectJump) continue;
      ASSERT_LT(jump, model_.times.size());
      ASSERT_EQ(record.time, model_.times[jump]) << "jump " << jump;
      ASSERT_NE(record.flags & kFlagTimeExact, 0) << "jump " << jump;
      ++jump;
    }
    EXPECT_EQ(jump, model_.times.size());
  }

  std::vector<BranchRecord> records_of(Decoder& decoder) const {
    RecordSink sink;
    decoder.decode(model_.trace, sink);
    sink.finish();
    return sink.drain();
  }

  CodeImage code_;
  DecoderConfig config_;
  Model model_{0};
};

TEST_F(TimedJumps, HaveTheTimeOfTheModelInTheCompleteDecoder) {
  expect_times(records_of(*make_flow_decoder(code_, config_)));
}

// A time of its own is that packet's alone: the next one has none unless it brings one.
TEST_F(TimedJumps, ATimeIsExactForOnePacketOnly) {
  PacketWriter out;
  out.psb();
  out.tsc(1000);
  out.fup({0x1000});
  out.psbend();
  out.tsc(2000);
  out.tip({0x1000});
  out.tip({0x1000});
  RecordSink complete, fast;
  FlowWalker(out.bytes(), code_, config_, complete).run(0, out.size_bytes());
  make_flow_decoder(code_, config_)->decode(out.bytes(), fast);
  for (RecordSink* sink : {&complete, &fast}) {
    sink->finish();
    std::vector<BranchRecord> records = sink->drain();
    ASSERT_EQ(records.size(), 4u);
    EXPECT_EQ(records[1].time, 2000u);
    EXPECT_NE(records[1].flags & kFlagTimeExact, 0);
    EXPECT_EQ(records[2].time, 2000u);
    EXPECT_EQ(records[2].flags & kFlagTimeExact, 0);
  }
}

// Further from the begin of a stretch than its marks can tell.
TEST_F(TimedJumps, HaveTimesThatLieFarApart) {
  constexpr std::uint64_t kStep = 1u << 30;  // of an MTC
  config_.timing = {1, kStep / 8, 3, 30};
  PacketWriter out;
  out.psb();
  out.tsc(1000);
  out.tma(0x100, 0);
  out.fup({0x1000});
  out.psbend();
  std::vector<std::uint64_t> expected;
  for (std::uint64_t step = 1; step <= 40; ++step) {
    out.mtc(static_cast<std::uint8_t>(0x20 + step));
    for (int jump = 0; jump < 3; ++jump) {
      out.tip({0x1000});
      expected.push_back(1000 + step * kStep);
    }
  }
  RecordSink complete, fast;
  FlowWalker(out.bytes(), code_, config_, complete).run(0, out.size_bytes());
  make_flow_decoder(code_, config_)->decode(out.bytes(), fast);
  for (RecordSink* sink : {&complete, &fast}) {
    sink->finish();
    std::vector<std::uint64_t> times;
    for (const BranchRecord& record : sink->drain())
      if (record.kind == RecordKind::kIndirectJump) times.push_back(record.time);
    EXPECT_EQ(times, expected);
  }
}

// Which gives an instruction the time of the packet before. Behind a sleep it is ahead until the
// second MTC: it measures by cycles that were not counted.
TEST_F(TimedJumps, AreABranchLateInIntelsDecoder) {
  jump(false);
  std::size_t jump = 0;
  std::uint64_t before = 0;
  for (const BranchRecord& record : records_of(*make_libipt_decoder(code_, config_))) {
    if (record.kind != RecordKind::kIndirectJump) continue;
    ASSERT_LT(jump, model_.times.size());
    ASSERT_GE(record.time, before) << "jump " << jump;
    ASSERT_LE(record.time, model_.times[jump]) << "jump " << jump;
    before = model_.times[jump++];
  }
  EXPECT_EQ(jump, model_.times.size());
}

TEST_F(TimedJumps, HaveTheTimeOfTheModelOnTheFastPath) {
  for (std::size_t least_bytes : {std::size_t{0}, model_.trace.size()}) {
    auto segments = find_segments(model_.trace, least_bytes);
    auto paths = decode_segments(model_.trace, segments, code_, config_, 1);
    expect_times(join_records(paths));
  }
}

}  // namespace
}  // namespace tailtrace::pt
