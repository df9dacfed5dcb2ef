#include "decoder/pt/record_sink.h"

#include <gtest/gtest.h>

#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/random_program.h"
#include "tests/support/shown.h"

namespace tailtrace::pt {
namespace {

// Where a walk stands at its end: its last record says so.
Address end_of(const ThreadSnapshot& snapshot) { return snapshot.records.back().from; }

enum class Which { kFlow, kLibipt };

std::vector<BranchRecord> decode(ByteSpan trace, const CodeImage& image, Address pc, Which which) {
  RecordSink sink;
  DecoderConfig config;
  auto decoder =
      which == Which::kFlow ? make_flow_decoder(image, config) : make_libipt_decoder(image, config);
  decoder->decode(trace, sink);
  return sink.finish(pc);
}

class RecordSinkOf : public testing::TestWithParam<Which> {};

TEST_P(RecordSinkOf, ShowsExactlyWhatWasExecuted) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProgram program(seed, 40);
    WalkOptions options;
    options.asynchronous = options.edges = options.losses = false;
    options.times = true;
    Walk walk = random_walk(program, seed, options);
    SynthesisOptions synthesis;
    synthesis.timing = SynthesisTiming::kTsc;
    auto trace = synthesize(walk.snapshot.records, *program.image(), {}, synthesis);
    ASSERT_TRUE(trace);
    Address pc = end_of(walk.snapshot);
    Shown shown = show(decode(*trace, *program.image(), pc, GetParam()), program.image());
    ASSERT_EQ(shown.executed, walk.executed) << "seed " << seed;
    ASSERT_TRUE(shown.gaps.empty()) << "seed " << seed;
  }
}

TEST_P(RecordSinkOf, KeepsTheKindsOfBranches) {
  RandomProgram program(3, 40);
  WalkOptions options;
  options.asynchronous = options.edges = options.losses = false;
  Walk walk = random_walk(program, 3, options);
  auto trace = synthesize(walk.snapshot.records, *program.image(), {}, {});
  ASSERT_TRUE(trace);
  auto records = decode(*trace, *program.image(), end_of(walk.snapshot), GetParam());
  auto branches = [](const std::vector<BranchRecord>& all) {
    std::vector<BranchRecord> result;
    for (BranchRecord record : all) {
      if (record.kind > RecordKind::kSystemReturn) continue;
      record.time = 0;
      record.flags = 0;
      result.push_back(record);
    }
    return result;
  };
  EXPECT_EQ(branches(records), branches(walk.snapshot.records));
}

TEST_P(RecordSinkOf, FollowsInterruptsSignalsAndEdges) {
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    RandomProgram program(seed, 40);
    WalkOptions options;
    options.losses = false;
    Walk walk = random_walk(program, seed, options);
    auto trace = synthesize(walk.snapshot.records, *program.image(), {}, {});
    ASSERT_TRUE(trace);
    Address pc = end_of(walk.snapshot);
    Shown shown = show(decode(*trace, *program.image(), pc, GetParam()), program.image());
    ASSERT_EQ(shown.executed, walk.executed) << "seed " << seed;
  }
}

TEST_P(RecordSinkOf, LossesAreGapsAndNothingIsInvented) {
  for (std::uint64_t seed = 200; seed < 260; ++seed) {
    RandomProgram program(seed, 40);
    WalkOptions options;
    options.asynchronous = options.edges = false;
    Walk walk = random_walk(program, seed, options);
    auto trace = synthesize(walk.snapshot.records, *program.image(), {}, {});
    ASSERT_TRUE(trace);
    Address pc = end_of(walk.snapshot);
    auto records = decode(*trace, *program.image(), pc, GetParam());
    ASSERT_EQ(records.back().from, pc);
    Shown shown = show(records, program.image());
    // What is shown is what was executed, with holes: a subsequence, judged by the walk itself.
    auto at = walk.executed.begin();
    for (Address address : shown.executed) {
      at = std::find(at, walk.executed.end(), address);
      ASSERT_NE(at, walk.executed.end()) << "seed " << seed;
      ++at;
    }
  }
}

TEST_P(RecordSinkOf, ATailOfATraceShowsATail) {
  RandomProgram program(5, 40);
  WalkOptions options;
  options.branches = 5000;
  options.asynchronous = options.edges = options.losses = false;
  Walk walk = random_walk(program, 5, options);
  SynthesisOptions synthesis;
  synthesis.psb_period_bytes = 256;
  auto trace = synthesize(walk.snapshot.records, *program.image(), {}, synthesis);
  ASSERT_TRUE(trace);
  for (std::size_t cut = 1; cut < trace->size(); cut += 97) {
    auto records =
        decode(ByteSpan(*trace).subspan(cut), *program.image(), end_of(walk.snapshot), GetParam());
    Shown shown = show(records, program.image());
    ASSERT_LE(shown.executed.size(), walk.executed.size());
    ASSERT_TRUE(std::equal(shown.executed.rbegin(), shown.executed.rend(), walk.executed.rbegin()))
        << "cut " << cut;
  }
}

// What a sink makes of a jump to itself, and of a gap at that jump.
std::vector<BranchRecord> gap_at_a_jump_to_itself(bool executed_again) {
  Instruction jump{{0x1000}, {0x1000}, 2, InstructionClass::kJump};
  RecordSink sink;
  sink.instructions({&jump, 1}, {});
  if (executed_again) sink.instructions({&jump, 1}, {});
  sink.gap({DecodeError::kBadQuery, {0x1000}, 0, 0, executed_again});
  sink.finish();
  return sink.drain();
}

TEST(RecordSinkAlone, AGapAtABranchToItselfTellsHowOftenItWasExecuted) {
  std::vector<BranchRecord> once = gap_at_a_jump_to_itself(false);
  ASSERT_EQ(once.size(), 3u);
  EXPECT_EQ(once[1], (BranchRecord{{0x1000}, {0x1000}, 0, 1, RecordKind::kJump, 0, 0}));
  EXPECT_EQ(once[2].kind, RecordKind::kGap);
  EXPECT_EQ(once[2].insns, 0u);
  std::vector<BranchRecord> twice = gap_at_a_jump_to_itself(true);
  ASSERT_EQ(twice.size(), 3u);
  EXPECT_EQ(twice[2].kind, RecordKind::kGap);
  EXPECT_EQ(twice[2].insns, 1u);
}

TEST(RecordSinkAlone, AnEventBehindABranchDoesNotChangeItsTime) {
  Instruction jump{{0x1000}, {0x2000}, 2, InstructionClass::kConditional};
  Instruction next{{0x2000}, {}, 1, InstructionClass::kOther};
  RecordSink sink;
  sink.instructions({&jump, 1}, {CodeMode::k64, false, true, 100});
  Event frequency;
  frequency.kind = EventKind::kCbr;
  frequency.flags = kEventHasTime;
  frequency.time = 120;
  sink.event(frequency);
  sink.instructions({&next, 1}, {CodeMode::k64, false, false, 120});
  std::vector<BranchRecord> records = sink.drain();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].time, 100u);
  EXPECT_NE(records[1].flags & kFlagTimeExact, 0);
}

TEST(RecordSinkAlone, ADirectJumpHasNoTimeOfItsOwn) {
  Instruction jump{{0x1000}, {0x2000}, 2, InstructionClass::kJump};
  Instruction next{{0x2000}, {}, 1, InstructionClass::kOther};
  RecordSink sink;
  sink.instructions({&jump, 1}, {CodeMode::k64, false, true, 100});
  sink.instructions({&next, 1}, {CodeMode::k64, false, true, 100});
  std::vector<BranchRecord> records = sink.drain();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].kind, RecordKind::kJump);
  EXPECT_EQ(records[1].flags & kFlagTimeExact, 0);
}

INSTANTIATE_TEST_SUITE_P(Decoders, RecordSinkOf, testing::Values(Which::kFlow, Which::kLibipt),
                         [](const auto& info) {
                           return info.param == Which::kFlow ? "Flow" : "Libipt";
                         });

}  // namespace
}  // namespace tailtrace::pt
