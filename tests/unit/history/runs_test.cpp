// Runs: what agreed with the code once is not held against it again, and is the same whoever asks;
// a value is kept for each different one.
#include "decoder/history/runs.h"

#include <gtest/gtest.h>

#include "decoder/history/same_run.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// Follows all records of a segment once more. Returns how many instructions that took, and how many
// gaps there are.
std::pair<std::uint64_t, std::uint64_t> follow_again(const std::vector<BranchRecord>& records,
                                                     const CodeImage& code) {
  constexpr std::uint64_t kLongRun_insns = 1 << 20;
  RunReader first(code, 64), again(code, 1), truth(code, 64);
  SegmentRecords content;
  content.records = records;
  const DecodedSegment segment(content, first, SegmentStore::kAll);
  FlowState state, true_state;
  std::uint64_t gaps = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Step step = segment.follow(i, state, again);
    const Step is = truth.advance(true_state, records[i], kLongRun_insns);
    EXPECT_EQ(step.start, is.start) << i;
    EXPECT_EQ(step.shown, is.shown) << i;
    EXPECT_EQ(step.gap.reason, is.gap.reason) << i;
    EXPECT_EQ(step.has_gap, is.has_gap) << i;
    EXPECT_EQ(step.epoch, is.epoch) << i;
    EXPECT_EQ(state.at, true_state.at) << i;
    EXPECT_EQ(state.place, true_state.place) << i;
    gaps += step.has_gap ? 1 : 0;
  }
  EXPECT_EQ(gaps, segment.gaps());
  return {again.walked_insns(), gaps};
}

TEST(Runs, OfNearBranchesThatAgreedWithTheCodeAreNotHeldAgainstItAgain) {
  for (std::uint64_t seed = 1; seed < 20; seed += 2) {
    SCOPED_TRACE(seed);
    const ToyRun run = ToyProgram(seed, 4, 6).run(seed, 3000, false);
    const std::vector<BranchRecord>& records = run.snapshot->records;
    std::uint64_t others_insns = 0;
    for (const BranchRecord& record : records)
      if (record.kind > RecordKind::kIndirectCall) others_insns += record.insns;
    auto [walked, gaps] = follow_again(records, *run.snapshot->code);
    EXPECT_LE(walked, others_insns);
    EXPECT_EQ(gaps, 0u);
  }
}

TEST(Runs, ThatContradictTheCodeAreGapsEachTime) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const ToyRun run = ToyProgram(seed, 4, 6).run(seed, 3000, seed % 2 == 0);
    std::vector<BranchRecord> records = run.snapshot->records;
    ++records[records.size() / 2].insns;
    EXPECT_NE(follow_again(records, *run.snapshot->code).second, 0u);
  }
}

TEST(Runs, AreEachKeptWithAValue) {
  RunMap<std::uint64_t> counts;
  constexpr std::uint64_t kRuns = 40'000;
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t i = 0; i < kRuns; ++i) ++counts[{{i / 4}, {}, i % 2, {i % 4 < 2 ? 0u : 1u}}];
  EXPECT_EQ(counts.size(), kRuns);
  for (const auto& [run, times] : counts) EXPECT_EQ(times, 3u);
  counts.clear();
  EXPECT_EQ(counts.size(), 0u);
  EXPECT_EQ((counts[{{1}, {}, 1, {0}}]), 0u);
}

}  // namespace
}  // namespace tailtrace
