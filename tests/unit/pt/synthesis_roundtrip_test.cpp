// Records, to PT, back to records: the identity, but for what PT cannot say.
#include <gtest/gtest.h>

#include "decoder/pt/record_sink.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/random_program.h"

namespace tailtrace::pt {
namespace {

// Rewrites records as far as PT has fewer words than they.
class PtWords {
 public:
  explicit PtWords(const RandomProgram& program) : program_(program) {}

  std::vector<BranchRecord> rewrite(const std::vector<BranchRecord>& records) {
    for (BranchRecord record : records) {
      record.insns += carried_;
      carried_ = 0;
      record.flags &= kFlagAsync | kFlagAbort;
      rewrite(record);
    }
    return std::move(out_);
  }

 private:
  void rewrite(BranchRecord record) {
    switch (record.kind) {
      case RecordKind::kMarker:
        carried_ = record.insns;
        return;
      case RecordKind::kConditional:
        // A branch to the next instruction looks as if it were not taken.
        if (record.to == record.from + program_.instructions().at(record.from.value).size_bytes) {
          carried_ = record.insns;
          return;
        }
        break;
      case RecordKind::kSignal:
      case RecordKind::kException:
        record.kind = RecordKind::kInterrupt;
        break;
      case RecordKind::kGap:
        if (record.from == record.to) {
          record.kind = RecordKind::kOverflow;
          break;
        }
        [[fallthrough]];
      case RecordKind::kDiscontinuity:
        record.kind = RecordKind::kSignal;
        break;
      case RecordKind::kEnable:
        if (out_.empty()) break;
        // Tracing that stops and goes on elsewhere looks like a signal's handler.
        out_.back().to = record.to;
        out_.back().kind = RecordKind::kSignal;
        return;
      default:
        break;
    }
    out_.push_back(record);
  }

  const RandomProgram& program_;
  std::vector<BranchRecord> out_;
  std::uint32_t carried_ = 0;
};

std::vector<BranchRecord> decode(Decoder& decoder, ByteSpan trace) {
  RecordSink sink;
  decoder.decode(trace, sink);
  sink.finish();
  std::vector<BranchRecord> records = sink.drain();
  for (BranchRecord& record : records) record.flags &= kFlagAsync | kFlagAbort;
  return records;
}

std::string text_of(const BranchRecord& r) {
  char text[160];
  std::snprintf(text, sizeof text, "%s %llx -> %llx, %u insns, flags %x",
                std::string(kind_name(r.kind)).c_str(),
                static_cast<unsigned long long>(r.from.value),
                static_cast<unsigned long long>(r.to.value), r.insns, r.flags);
  return text;
}

void expect_same_but_times(const std::vector<BranchRecord>& seen,
                           const std::vector<BranchRecord>& wanted) {
  for (std::size_t i = 0; i < std::min(seen.size(), wanted.size()); ++i)
    ASSERT_EQ(text_of(seen[i]), text_of(wanted[i])) << "record " << i;
  EXPECT_EQ(seen.size(), wanted.size());
}

// What goes on where it stood is dropped.
std::vector<BranchRecord> without_pauses(const std::vector<BranchRecord>& records) {
  std::vector<BranchRecord> out;
  std::uint32_t carried = 0;
  for (BranchRecord record : records) {
    record.insns += carried;
    bool pauses = record.kind == RecordKind::kInterrupt || record.kind == RecordKind::kSignal;
    bool drop = pauses && record.from == record.to;
    carried = drop ? record.insns : 0;
    if (!drop) out.push_back(record);
  }
  return out;
}

using MakeDecoder = std::unique_ptr<Decoder> (*)(const CodeImage&, const DecoderConfig&);

class SynthesisRoundTrip : public testing::TestWithParam<MakeDecoder> {};

TEST_P(SynthesisRoundTrip, GivesTheSameRecords) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProgram program(seed, 2 + seed % 60);
    WalkOptions walk_options;
    walk_options.branches = 2000;
    walk_options.transactions = seed % 2 == 0;
    walk_options.times = true;
    Walk walk = random_walk(program, seed + 1000, walk_options);
    std::vector<BranchRecord> wanted =
        without_pauses(PtWords(program).rewrite(walk.snapshot.records));
    DecoderConfig config;
    config.timing = SynthesisOptions{}.clocks;
    auto decoder = GetParam()(*program.image(), config);
    for (std::uint64_t period : {0, 1, 300}) {
      SCOPED_TRACE(seed * 1000 + period);
      SynthesisOptions options;
      options.psb_period_bytes = period;
      options.return_compression = seed % 3 != 0;
      options.timing = static_cast<SynthesisTiming>(seed % 4);
      options.pause_at_psb = seed % 5 == 0;
      auto trace = synthesize(walk.snapshot.records, *program.image(), {}, options);
      ASSERT_TRUE(trace);
      expect_same_but_times(decode(*decoder, *trace), wanted);
      if (HasFatalFailure()) return;
    }
  }
}

// The time of a branch that a packet tells. It is exact where an instruction follows before the
// next event, which has a packet of its own.
struct TargetTime {
  std::uint64_t time;
  bool exact;
};

std::vector<TargetTime> times_of_packets(const std::vector<BranchRecord>& records) {
  std::vector<TargetTime> times;
  for (std::size_t i = 0; i + 1 < records.size(); ++i) {
    RecordKind kind = records[i].kind;
    if (kind == RecordKind::kReturn || kind == RecordKind::kIndirectJump ||
        kind == RecordKind::kIndirectCall)
      times.push_back({records[i].time, records[i + 1].insns != 0});
  }
  return times;
}

struct BothTimes {
  std::vector<TargetTime> written;
  std::vector<TargetTime> read;
};

BothTimes times_with(SynthesisTiming timing, MakeDecoder make_decoder, std::uint64_t psb_period) {
  RandomProgram program(7, 50);
  WalkOptions walk_options;
  walk_options.branches = 20000;
  walk_options.edges = walk_options.losses = false;
  walk_options.times = true;
  Walk walk = random_walk(program, 7, walk_options);
  SynthesisOptions options;
  options.timing = timing;
  options.psb_period_bytes = psb_period;
  auto trace = synthesize(walk.snapshot.records, *program.image(), {}, options);
  EXPECT_TRUE(trace);
  DecoderConfig config;
  config.timing = options.clocks;
  auto decoder = make_decoder(*program.image(), config);
  return {times_of_packets(walk.snapshot.records), times_of_packets(decode(*decoder, *trace))};
}

void expect_times(const BothTimes& times, std::uint64_t tolerance_ticks) {
  ASSERT_GT(times.written.size(), 1000u);
  ASSERT_EQ(times.read.size(), times.written.size());
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < times.read.size(); ++i) {
    auto [written, exact] = times.written[i];
    std::uint64_t read = times.read[i].time;
    ASSERT_LE(last, read) << i;
    ASSERT_LE(read, written) << i;
    ASSERT_TRUE(!exact || written - read <= tolerance_ticks)
        << i << ": " << read << ", " << written;
    last = read;
  }
}

// libipt only tells a time that is not later.
constexpr std::uint64_t kNotLater = ~0ull;

TEST_P(SynthesisRoundTrip, TscAndCycTellTheExactTimes) {
  std::uint64_t tolerance = GetParam() == &make_flow_decoder ? 0 : kNotLater;
  for (SynthesisTiming timing : {SynthesisTiming::kTsc, SynthesisTiming::kCyc})
    for (std::uint64_t period : {0, 512})
      expect_times(times_with(timing, GetParam(), period), tolerance);
}

TEST_P(SynthesisRoundTrip, MtcTellsTheTimeWithinItsPeriod) {
  std::uint64_t tolerance = GetParam() == &make_flow_decoder ? 84 * 8 : kNotLater;
  expect_times(times_with(SynthesisTiming::kMtc, GetParam(), 4096), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Libipt, SynthesisRoundTrip, testing::Values(&make_libipt_decoder));
INSTANTIATE_TEST_SUITE_P(Flow, SynthesisRoundTrip, testing::Values(&make_flow_decoder));

}  // namespace
}  // namespace tailtrace::pt
