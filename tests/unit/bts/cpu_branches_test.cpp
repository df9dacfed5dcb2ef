#include "decoder/bts/cpu_branches.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/bts/two_threads.h"

namespace tailtrace::bts {
namespace {

// A forward ring of samples that say whose they are.
class Samples {
 public:
  explicit Samples(std::size_t size) : bytes_(size) {}

  void put(ThreadId thread, std::uint64_t time_ns, std::uint64_t from) {
    struct {
      perf::RecordHeader header{perf::kRecordSample, 0, kOwnedSampleSize_bytes};
      std::uint64_t from = 0;
      std::int32_t pid = 0, tid = 0;
      std::uint64_t time_ns = 0, to = 0;
    } sample;
    sample.from = from;
    sample.to = from + 1;
    sample.pid = thread.pid;
    sample.tid = thread.tid;
    sample.time_ns = time_ns;
    for (std::size_t i = 0; i < sizeof sample; ++i)
      bytes_[(head_ + i) % bytes_.size()] = reinterpret_cast<const std::uint8_t*>(&sample)[i];
    head_ += sizeof sample;
  }
  CpuBranches read() const {
    auto records = perf::read_fixed_records(
        bytes_, head_, {perf::kRecordSample, 0, kOwnedSampleSize_bytes}, ~0ull);
    EXPECT_TRUE(records);
    return read_cpu_samples(*records);
  }

 private:
  Bytes bytes_;
  std::uint64_t head_ = 0;
};

bool all_may(ThreadId, ThreadId, std::uint64_t) { return true; }
bool none_may(ThreadId, ThreadId, std::uint64_t) { return false; }

// A's and B's branches, written when each left the CPU.
CpuBranches two_turns() {
  Samples samples(4096);
  for (std::uint64_t from : {1, 2}) samples.put(kA, 100, from);
  for (std::uint64_t from : {3, 4}) samples.put(kB, 200, from);
  samples.put(kA, 300, 5);
  return samples.read();
}

TEST(CpuBranches, AreBatchesOfWhatWasWrittenTogether) {
  CpuBranches cpu = two_turns();
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(cpu.begin_ns, 0u);
  EXPECT_EQ(cpu.batches[1].thread, kB);
  EXPECT_EQ(cpu.batches[1].time_ns, 200u);
  EXPECT_EQ(sources(cpu.batches[1]), (std::vector<std::uint64_t>{3, 4}));
  auto shares = shares_by_thread({&cpu, 1});
  ASSERT_EQ(shares.at(kA).size(), 2u);
  EXPECT_FALSE(shares.at(kA)[0].lost_before || shares.at(kA)[1].lost_before);
}

TEST(CpuBranches, OfARingThatWentRoundBeginWithALoss) {
  Samples samples(128);  // three samples and a bit
  for (std::uint64_t i = 1; i <= 5; ++i) samples.put(i % 2 == 0 ? kA : kB, 100 * i, i);
  CpuBranches cpu = samples.read();
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(cpu.begin_ns, 300u);
  auto shares = shares_by_thread({&cpu, 1});
  EXPECT_TRUE(shares.at(kB)[0].lost_before);
  EXPECT_FALSE(shares.at(kB)[1].lost_before) << "nothing of it was overwritten in between";
  EXPECT_TRUE(shares.at(kA)[0].lost_before);
}

TEST(CpuBranches, OfAThreadThatMovedAreInTheOrderOfTime) {
  Samples first(4096), second(128);
  first.put(kA, 100, 1);
  first.put(kA, 900, 9);
  for (std::uint64_t i = 3; i <= 8; ++i) second.put(kA, 100 * i, i);
  const CpuBranches cpus[] = {first.read(), second.read()};
  std::vector<std::uint64_t> order;
  std::vector<bool> lost;
  const auto shares = shares_by_thread(cpus);
  for (const Share& share : shares.at(kA)) {
    order.push_back(share.batch->branches.front().from.value);
    lost.push_back(share.lost_before.has_value());
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 6, 7, 8, 9}));
  // What the second CPU forgot may have been before either of its neighbours.
  EXPECT_EQ(lost, (std::vector<bool>{true, true, false, false, false}));
}

TEST(CpuBranches, ThatMayBeTwoThreadsAreTakenAwayFromBoth) {
  CpuBranches cpu = two_turns();
  // B's turn ended twice, and once nothing was written.
  take_away_mixed(cpu, {{{kA, 50, 99}, {kB, 120, 199}, {kB, 210, 250}, {kA, 260, 299}}}, 0,
                  all_may);
  ASSERT_EQ(cpu.batches.size(), 4u);
  EXPECT_EQ(sources(cpu.batches[1]), (std::vector<std::uint64_t>{3, 4}));
  for (int i : {2, 3}) {
    EXPECT_TRUE(cpu.batches[i].branches.empty());
    EXPECT_TRUE(cpu.batches[i].after_loss);
  }
  EXPECT_EQ(cpu.batches[2].thread, kB);
  EXPECT_EQ(cpu.batches[3].thread, kA);
}

TEST(CpuBranches, OfAThreadThatEndedAreWrittenBeforeItsTurnEnds) {
  CpuBranches cpu = two_turns();
  take_away_mixed(cpu, {{{kA, 50, 99}, {kB, 120, 250, true}, {kA, 260, 299}}}, 0, all_may);
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(sources(cpu.batches[2]), (std::vector<std::uint64_t>{5}));
}

TEST(CpuBranches, OfThreadsThatNeverChangePlacesAreTheirs) {
  CpuBranches cpu = two_turns();
  take_away_mixed(cpu, {{{kB, 210, 250}, {kA, 260, 299}}}, 210, none_may);
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(sources(cpu.batches[2]), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(cpu.begin_ns, 0u);
}

TEST(CpuBranches, FromBeforeTheTurnsAreKnownAreNotBelieved) {
  CpuBranches cpu = two_turns();
  take_away_mixed(cpu, {{{kA, 260, 299}}}, 260, all_may);
  ASSERT_EQ(cpu.batches.size(), 1u);
  EXPECT_EQ(cpu.begin_ns, 260u);
}

TEST(CpuBranches, OfStacksAreLostWhereThreadsMayHaveChangedPlaces) {
  CpuBranches cpu;
  for (std::uint64_t time : {100, 200, 300}) cpu.batches.push_back({kA, time, {{{1}, {2}}}, {}});
  CpuBranches same = cpu;
  const perf::CpuSlots slots = {{{kA, 50, 150}, {kB, 150, 160}, {kA, 160, 400}}};
  part_stacks(same, slots, 0, none_may);
  EXPECT_EQ(same.batches.size(), 3u);
  part_stacks(cpu, slots, 0, all_may);
  auto shares = shares_by_thread({&cpu, 1});
  EXPECT_EQ(shares.at(kB).size(), 2u);
  std::vector<bool> lost;
  for (const Share& share : shares.at(kA)) lost.push_back(share.lost_before.has_value());
  EXPECT_EQ(lost, (std::vector<bool>{false, true, true, false, false}));
  part_stacks(same, slots, 150, all_may);
  EXPECT_EQ(same.begin_ns, 150u);
}

}  // namespace
}  // namespace tailtrace::bts
