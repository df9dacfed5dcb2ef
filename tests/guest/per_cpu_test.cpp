// A process recorded by CPU: threads and processes that are made and end while it is recorded, each
// with the history that the kernel saw it execute.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "plugin/engines/perf/process_recording.h"
#include "tests/guest/config.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"

namespace tailtrace::perf {
namespace {

// Threads that take turns, so that the trace has many slots.
void two_generations() {
  for (int generation = 0; generation < 2; ++generation) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i)
      threads.emplace_back([i] {
        for (int turn = 0; turn < 4; ++turn) {
          work(10 + 5 * i, {false, true});
          std::this_thread::yield();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

struct Taken {
  std::vector<ThreadSnapshot> threads;
  std::vector<std::int32_t> in_truth;
};

Taken record(std::function<void()> part, std::uint64_t buffer_bytes, bool children,
             Hardware hardware = Hardware::kPt) {
  Child child({std::move(part)});
  PerfConfig config = config_of(buffer_bytes);
  config.lbr_period = 16;
  reset_truth();
  auto recording = ProcessRecording::start(real_kernel(), hardware, config, child.pid(), children);
  EXPECT_TRUE(recording) << recording.error().to_string();
  if (!recording) return {};
  EXPECT_TRUE(child.run());
  auto taken = recording->snapshot(1 << 20);
  EXPECT_TRUE(taken) << taken.error().to_string();
  if (!taken) return {};
  return {std::move(*taken), traced_threads()};
}

TEST(PerCpu, EveryThreadThatCameAndWentHasItsHistory) {
  Taken taken = record(two_generations, 4 << 20, false);
  ASSERT_EQ(taken.in_truth.size(), 7u);
  std::size_t whole = 0;
  for (const ThreadSnapshot& snapshot : taken.threads) {
    std::vector<Address> truth = read_truth(snapshot.thread.tid);
    Shown shown = show(snapshot);
    EXPECT_TRUE(snapshot.complete);
    EXPECT_EQ(shown.executed.size(), truth.size()) << snapshot.thread.tid;
    EXPECT_TRUE(shown.executed == truth);
    // Where a thread that has ended would stand nobody knows.
    EXPECT_TRUE(shown.breaks.empty() ||
                shown.breaks == std::vector<std::size_t>{shown.executed.size()});
    whole += !truth.empty() && shown.executed == truth;
    std::printf("    thread %d: %zu instructions, %zu gaps\n", snapshot.thread.tid, truth.size(),
                shown.breaks.size());
  }
  EXPECT_EQ(whole, 7u);
}

TEST(PerCpu, BuffersThatWentRoundLeaveTheTails) {
  Taken taken = record(two_generations, 16384, false);
  std::size_t shown_insns = 0;
  for (const ThreadSnapshot& snapshot : taken.threads) {
    Shown shown = show(snapshot);
    expect_stretches(shown, read_truth(snapshot.thread.tid));
    shown_insns += shown.executed.size();
  }
  EXPECT_GT(shown_insns, 1000u);
}

TEST(PerCpu, ProcessesThatItMakesAreRecordedOnRequest) {
  auto part = [] {
    work(10, {false, true});
    pid_t pid = ::fork();
    work(10, {false, true});
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
  };
  for (bool children : {false, true}) {
    Taken taken = record(part, 4 << 20, children);
    ASSERT_EQ(taken.in_truth.size(), children ? 2u : 1u);
    std::size_t exact = 0;
    for (const ThreadSnapshot& snapshot : taken.threads) {
      Shown shown = show(snapshot);
      exact += shown.executed == read_truth(snapshot.thread.tid) && !shown.executed.empty();
    }
    EXPECT_EQ(exact, taken.in_truth.size());
  }
}

// One after the other on one CPU, a program and the one that its child becomes, each with its code.
TEST(PerCpu, AProgramThatAChildExecutesIsReadWithItsOwnCode) {
  auto part = [] {
    work(10, {false, true});
    pid_t pid = ::fork();
    if (pid == 0) {
      ::execl("/bin/busybox", "busybox", "true", nullptr);
      ::_exit(1);
    }
    work(10, {false, true});
    ::waitpid(pid, nullptr, 0);
    work(10, {false, true});
  };
  Taken taken = record(part, 4 << 20, true);
  ASSERT_EQ(taken.in_truth.size(), 2u);
  std::size_t exact = 0;
  for (const ThreadSnapshot& snapshot : taken.threads) {
    Shown shown = show(snapshot);
    std::vector<Address> truth = read_truth(snapshot.thread.tid);
    if (truth.empty()) continue;
    expect_stretches(shown, truth);
    // What exec takes away is shown as far as it went.
    EXPECT_GE(shown.executed.size() + 8, truth.size());
    exact += shown.executed == truth;
  }
  EXPECT_GE(exact, 1u);
}

class BranchesPerCpu : public testing::TestWithParam<Hardware> {};

// Branches do not tell what was executed before the first and behind the last of a thread.
constexpr std::size_t kMostUntold_insns = 64;

TEST_P(BranchesPerCpu, EveryThreadThatCameAndWentHasItsOwn) {
  Taken taken = record(two_generations, 4 << 20, false, GetParam());
  ASSERT_EQ(taken.in_truth.size(), 7u);
  ASSERT_EQ(taken.threads.size(), 7u);
  for (const ThreadSnapshot& snapshot : taken.threads) {
    std::vector<Address> truth = read_truth(snapshot.thread.tid);
    Shown shown = show(snapshot);
    expect_stretches(shown, truth);
    EXPECT_GT(shown.executed.size(), 100u);
    if (GetParam() == Hardware::kLbr) continue;
    EXPECT_GE(shown.executed.size() + kMostUntold_insns, truth.size()) << snapshot.thread.tid;
    EXPECT_TRUE(shown.breaks.empty() ||
                shown.breaks == std::vector<std::size_t>{shown.executed.size()});
  }
}

TEST_P(BranchesPerCpu, BuffersThatWentRoundLeaveTheTails) {
  Taken taken = record(two_generations, 16384, false, GetParam());
  std::size_t shown_insns = 0;
  for (const ThreadSnapshot& snapshot : taken.threads) {
    Shown shown = show(snapshot);
    EXPECT_FALSE(snapshot.complete);
    expect_stretches(shown, read_truth(snapshot.thread.tid));
    shown_insns += shown.executed.size();
  }
  EXPECT_GT(shown_insns, 300u);
}

// They may change places without a word, which must not mix them up.
TEST_P(BranchesPerCpu, ThreadsThatThreadsMakeAreNotMixedUp) {
  auto part = [] {
    std::thread([] {
      std::thread inner([] {
        for (int turn = 0; turn < 4; ++turn) {
          work(5, {false, true});
          std::this_thread::yield();
        }
      });
      for (int turn = 0; turn < 4; ++turn) {
        work(8, {false, true});
        std::this_thread::yield();
      }
      inner.join();
    }).join();
  };
  Taken taken = record(part, 4 << 20, false, GetParam());
  ASSERT_EQ(taken.in_truth.size(), 3u);
  for (const ThreadSnapshot& snapshot : taken.threads)
    expect_stretches(show(snapshot), read_truth(snapshot.thread.tid));
}

TEST_P(BranchesPerCpu, ProcessesThatItMakesAreRecordedOnRequest) {
  auto part = [] {
    work(10, {false, true});
    pid_t pid = ::fork();
    work(10, {false, true});
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
  };
  for (bool children : {false, true}) {
    Taken taken = record(part, 4 << 20, children, GetParam());
    ASSERT_EQ(taken.in_truth.size(), children ? 2u : 1u);
    ASSERT_EQ(taken.threads.size(), taken.in_truth.size());
    for (const ThreadSnapshot& snapshot : taken.threads)
      expect_stretches(show(snapshot), read_truth(snapshot.thread.tid));
  }
}

INSTANTIATE_TEST_SUITE_P(Hardware, BranchesPerCpu, testing::Values(Hardware::kBts, Hardware::kLbr),
                         [](const auto& info) {
                           return info.param == Hardware::kBts ? "Bts" : "Lbr";
                         });

TEST(PerCpu, NamesAreThoseThatTheKernelTold) {
  Child child({[] { std::thread([] { ::prctl(PR_SET_NAME, "worker"); }).join(); }});
  auto recording =
      ProcessRecording::start(real_kernel(), Hardware::kPt, config_of(1 << 20), child.pid(), false);
  ASSERT_TRUE(recording) << recording.error().to_string();
  ASSERT_TRUE(child.run());
  ASSERT_TRUE(recording->look());
  std::size_t workers = 0;
  for (const auto& [tid, name] : recording->names()) workers += name == "worker";
  EXPECT_EQ(workers, 1u);
  EXPECT_EQ(recording->names().size(), 2u);
}

}  // namespace
}  // namespace tailtrace::perf
