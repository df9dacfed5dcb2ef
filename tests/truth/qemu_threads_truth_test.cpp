// Each thread's history against what single-stepping saw of it. How threads wait for each other
// differs from run to run: what is compared is the work that each does alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

// The stretches from one address to the next occurrence of the other.
std::vector<Addresses> stretches(const Addresses& all, std::uint64_t begin, std::uint64_t end) {
  std::vector<Addresses> found;
  for (auto at = all.begin(); (at = std::find(at, all.end(), begin)) != all.end();) {
    auto until = std::find(at, all.end(), end);
    found.emplace_back(at, until);
    at = until;
  }
  return found;
}

void expect_same_work(std::uint64_t ring_records) {
  std::string program = built_program("three_workers");
  auto begin = address_of(program, "work_begin"), end = address_of(program, "work_end");
  ASSERT_TRUE(begin && end);
  auto truth = step_under_qemu({program, "200"}, kTestEnvironment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  std::vector<Addresses> stepped;
  for (const StepAddresses& steps : truth->threads)
    for (Addresses& work : stretches(steps, *begin, *end)) stepped.push_back(std::move(work));
  QemuOptions options = test_options({program, "200"});
  options.ring_records = ring_records;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, truth->status);
  std::vector<Addresses> histories;
  const auto& threads = recorded->processes.at(0).threads;
  ASSERT_EQ(threads.size(), 3u);
  for (const RecordedThread& thread : threads) {
    Unfolded history = unfold(thread.snapshot, false);
    EXPECT_EQ(history.problem, "");
    EXPECT_TRUE(thread.snapshot.complete);
    for (Addresses& work : stretches(history.executed, *begin, *end))
      histories.push_back(std::move(work));
  }
  ASSERT_EQ(stepped.size(), 3u);
  std::sort(stepped.begin(), stepped.end());
  std::sort(histories.begin(), histories.end());
  for (const Addresses& work : stepped) EXPECT_GT(work.size(), 10000u);
  EXPECT_EQ(histories, stepped);
}

TEST(QemuThreadsTruth, EachThreadsWorkIsWhatSteppingSaw) { expect_same_work(1 << 20); }

TEST(QemuThreadsTruth, EndedThreadsSaySoAndBeginTheirHistoriesAtTheirBirth) {
  auto recorded = record_to_end(test_options({built_program("three_workers")}));
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  const auto& threads = recorded->processes.at(0).threads;
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0].state, RingState::kProcessExited);
  EXPECT_EQ(threads[0].snapshot.thread.tid, threads[0].snapshot.thread.pid);
  for (int i : {1, 2}) {
    const ThreadSnapshot& snapshot = threads[static_cast<std::size_t>(i)].snapshot;
    EXPECT_EQ(threads[static_cast<std::size_t>(i)].state, RingState::kThreadExited);
    EXPECT_NE(snapshot.thread.tid, threads[0].snapshot.thread.tid);
    ASSERT_FALSE(snapshot.records.empty());
    EXPECT_EQ(snapshot.records.front().kind, RecordKind::kEnable);
    EXPECT_EQ(snapshot.records.back().kind, RecordKind::kDisable);
    EXPECT_EQ(snapshot.records.back().extra, static_cast<std::uint16_t>(EdgeCause::kThread));
  }
}

// A vCPU's number and its ring's place are used again when its thread has ended.
void expect_all_worked(int rounds, int width, std::size_t kept) {
  std::string program = built_program("many_threads");
  auto begin = address_of(program, "work_begin"), end = address_of(program, "work_end");
  ASSERT_TRUE(begin && end);
  auto truth = step_under_qemu({program}, kTestEnvironment);  // one round of one thread
  ASSERT_TRUE(truth) << truth.error().to_string();
  ASSERT_EQ(truth->threads.size(), 2u);
  auto stepped = stretches(truth->threads[1], *begin, *end);
  ASSERT_EQ(stepped.size(), 1u);
  QemuOptions options = test_options({program, std::to_string(rounds), std::to_string(width)});
  options.ring_records = 1 << 11;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, 0);
  const auto& threads = recorded->processes.at(0).threads;
  ASSERT_EQ(threads.size(), kept + 1);  // and the main thread
  std::set<std::int32_t> tids;
  for (std::size_t i = 1; i < threads.size(); ++i) {
    EXPECT_EQ(threads[i].state, RingState::kThreadExited);
    tids.insert(threads[i].snapshot.thread.tid);
    Unfolded history = unfold(threads[i].snapshot, false);
    EXPECT_EQ(history.problem, "");
    EXPECT_TRUE(threads[i].snapshot.complete);
    auto work = stretches(history.executed, *begin, *end);
    ASSERT_EQ(work.size(), 1u) << "thread " << i;
    EXPECT_TRUE(is_equal(work[0], stepped[0])) << "thread " << i;
  }
  EXPECT_EQ(tids.size(), kept);
}

TEST(QemuThreadsTruth, ThreadsThatFollowEachOtherAreAllRecorded) { expect_all_worked(100, 1, 100); }

TEST(QemuThreadsTruth, ThreadsAtOnceAreAllRecorded) { expect_all_worked(4, 50, 200); }

TEST(QemuThreadsTruth, OfVeryManyThreadsTheNewestAreKept) { expect_all_worked(20, 20, 256); }

TEST(QemuThreadsTruth, CodeThatOneThreadWritesAndAnotherExecutesIsThatOfItsTime) {
  std::string program = built_program("changes_code_for_others");
  auto begin = address_of(program, "work_begin"), end = address_of(program, "work_end");
  ASSERT_TRUE(begin && end);
  auto truth = step_under_qemu({program}, kTestEnvironment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  ASSERT_EQ(truth->threads.size(), 2u);
  QemuOptions options = test_options({program});
  options.ring_records = 1 << 17;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, truth->status);
  const auto& threads = recorded->processes.at(0).threads;
  ASSERT_EQ(threads.size(), 2u);
  const std::size_t rounds[] = {6, 24};
  for (std::size_t i = 0; i < 2; ++i) {
    Unfolded history = unfold(threads[i].snapshot, false);
    EXPECT_EQ(history.problem, "");
    auto stepped = stretches(truth->threads[i], *begin, *end);
    EXPECT_EQ(stepped.size(), rounds[i]);
    EXPECT_EQ(stretches(history.executed, *begin, *end), stepped) << "thread " << i;
  }
}

}  // namespace
}  // namespace tailtrace
