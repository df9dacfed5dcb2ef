// A process recorded by CPU: threads and processes that are made and end while it is recorded, each
// with the history that the kernel saw it execute.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "plugin/engines/perf/pmu.h"
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

void fork_and_work() {
  work(10, {false, true});
  pid_t pid = ::fork();
  work(10, {false, true});
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
}

// The guest's kernel for somebody who may not have the area of BTS.
class WithoutArea final : public Kernel {
 public:
  int open(const perf_event_attr& attr, Target target, int group) override {
    if (attr.type == read_pmu({}, "intel_bts")->type) return -EACCES;
    return real_kernel().open(attr, target, group);
  }
  int map(int fd, std::uint64_t offset, std::size_t size, int protection, void*& map) override {
    return real_kernel().map(fd, offset, size, protection, map);
  }
  int control(int fd, unsigned long request, std::uint64_t argument) override {
    return real_kernel().control(fd, request, argument);
  }
  int read_count(int fd, std::uint64_t& count) override {
    return real_kernel().read_count(fd, count);
  }
};

enum class Way { kPt, kBts, kBtsSamples, kLbr };

ProcessRecording must_start(const Child& child, Way way, std::uint64_t buffer_bytes,
                            bool children) {
  static WithoutArea without_area;
  Kernel& kernel = way == Way::kBtsSamples ? without_area : real_kernel();
  const Hardware hardware = way == Way::kPt    ? Hardware::kPt
                            : way == Way::kLbr ? Hardware::kLbr
                                               : Hardware::kBts;
  PerfConfig config = config_of(buffer_bytes);
  config.lbr_period = 16;
  reset_truth();
  auto recording = ProcessRecording::start(kernel, hardware, config, child.pid(), children);
  if (!recording) throw std::runtime_error(recording.error().to_string());
  EXPECT_EQ(recording->take_remarks().size(), way == Way::kBtsSamples ? 1u : 0u);
  return std::move(*recording);
}

struct Taken {
  std::vector<ThreadSnapshot> threads;
  std::vector<std::int32_t> in_truth;
};

Taken take(ProcessRecording& recording) {
  auto taken = recording.snapshot(1 << 20);
  EXPECT_TRUE(taken) << taken.error().to_string();
  if (!taken) return {};
  return {std::move(*taken), traced_threads()};
}

Taken record(std::function<void()> part, std::uint64_t buffer_bytes, bool children,
             Way way = Way::kPt) {
  Child child({std::move(part)});
  ProcessRecording recording = must_start(child, way, buffer_bytes, children);
  EXPECT_TRUE(child.run());
  return take(recording);
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
  for (bool children : {false, true}) {
    Taken taken = record(fork_and_work, 4 << 20, children);
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

class BranchesPerCpu : public testing::TestWithParam<Way> {};

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
    if (GetParam() == Way::kLbr) continue;
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
  // How much it is depends on who came last, and on how long before a buffer was cut.
  EXPECT_GT(shown_insns, 100u);
}

// From stop to stop: what was shown once stays, and what comes later follows without a gap.
TEST_P(BranchesPerCpu, GoOnBehindASnapshot) {
  Child child({two_generations, two_generations});
  ProcessRecording recording = must_start(child, GetParam(), 4 << 20, false);
  for (std::size_t generations : {2, 4}) {
    ASSERT_TRUE(child.run());
    Taken taken = take(recording);
    ASSERT_EQ(taken.threads.size(), 1 + 3 * generations);
    for (const ThreadSnapshot& snapshot : taken.threads) {
      Shown shown = show(snapshot);
      expect_stretches(shown, read_truth(snapshot.thread.tid));
      if (GetParam() == Way::kLbr) continue;
      EXPECT_TRUE(shown.breaks.empty() || shown.breaks.back() == shown.executed.size());
      EXPECT_LE(shown.breaks.size(), 1u);
    }
  }
}

void threads_that_threads_make() {
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
}

// They may change places without a word, which must not mix them up.
TEST_P(BranchesPerCpu, ThreadsThatThreadsMakeAreNotMixedUp) {
  Taken taken = record(threads_that_threads_make, 4 << 20, false, GetParam());
  ASSERT_EQ(taken.in_truth.size(), 3u);
  for (const ThreadSnapshot& snapshot : taken.threads)
    expect_stretches(show(snapshot), read_truth(snapshot.thread.tid));
}

// Lets the process run to its next stop of its own, and has every thread adopted that it makes.
// All of those end before.
void run_and_adopt(const Child& child, ProcessRecording& recording) {
  ASSERT_EQ(::ptrace(PTRACE_SETOPTIONS, child.pid(), nullptr, PTRACE_O_TRACECLONE), 0);
  ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
  std::set<pid_t> running = {child.pid()};
  while (!running.empty()) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL);
    ASSERT_GT(tid, 0);
    const bool stands = WIFSTOPPED(status) && tid == child.pid() && status >> 16 == 0;
    if (stands || !WIFSTOPPED(status)) {
      running.erase(tid);
      continue;
    }
    if (running.insert(tid).second) recording.adopt({child.pid(), tid});
    ASSERT_EQ(::ptrace(PTRACE_CONT, tid, nullptr, 0), 0);
  }
}

// Not of stacks, which have holes by nature.
class AllBranchesPerCpu : public testing::TestWithParam<Way> {};

// Nor do they, when each is told of before it begins.
TEST_P(AllBranchesPerCpu, ThreadsThatAreAdoptedHaveTheirs) {
  Child child({threads_that_threads_make});
  ProcessRecording recording = must_start(child, GetParam(), 4 << 20, false);
  run_and_adopt(child, recording);
  Taken taken = take(recording);
  ASSERT_EQ(taken.in_truth.size(), 3u);
  for (const ThreadSnapshot& snapshot : taken.threads) {
    const std::vector<Address> truth = read_truth(snapshot.thread.tid);
    Shown shown = show(snapshot);
    expect_stretches(shown, truth);
    EXPECT_GE(shown.executed.size() + kMostUntold_insns, truth.size());
    EXPECT_TRUE(shown.breaks.empty() ||
                shown.breaks == std::vector<std::size_t>{shown.executed.size()});
  }
}

// What is made faster than anybody can make room for is a gap.
TEST_P(BranchesPerCpu, BuffersThatAreTooSmallLeaveGaps) {
  Taken taken = record(two_generations, 4096, false, GetParam());
  for (const ThreadSnapshot& snapshot : taken.threads) {
    EXPECT_FALSE(snapshot.complete);
    expect_stretches(show(snapshot), read_truth(snapshot.thread.tid));
  }
}

TEST_P(BranchesPerCpu, ProcessesThatItMakesAreRecordedOnRequest) {
  for (bool children : {false, true}) {
    Taken taken = record(fork_and_work, 4 << 20, children, GetParam());
    ASSERT_EQ(taken.in_truth.size(), children ? 2u : 1u);
    ASSERT_EQ(taken.threads.size(), taken.in_truth.size());
    for (const ThreadSnapshot& snapshot : taken.threads)
      expect_stretches(show(snapshot), read_truth(snapshot.thread.tid));
  }
}

std::string name_of_way(const testing::TestParamInfo<Way>& info) {
  if (info.param == Way::kLbr) return "Lbr";
  return info.param == Way::kBts ? "Bts" : "BtsSamples";
}

INSTANTIATE_TEST_SUITE_P(Hardware, BranchesPerCpu,
                         testing::Values(Way::kBts, Way::kBtsSamples, Way::kLbr), name_of_way);
INSTANTIATE_TEST_SUITE_P(Hardware, AllBranchesPerCpu, testing::Values(Way::kBts, Way::kBtsSamples),
                         name_of_way);

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
