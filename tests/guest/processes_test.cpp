// Threads, forks and programs that replace each other, recorded thread by thread: each history is
// what the kernel saw that thread execute.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "plugin/provider/trace_provider.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"

namespace tailtrace {
namespace {

using perf::Hardware;

perf::PerfConfig large() {
  perf::PerfConfig config;
  config.records.ring_records = 1 << 20;
  config.buffer_bytes = 1 << 20;
  return config;
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void put() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  void take() const {
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  }
  int ends[2];
};

// Waits until the thread sleeps in a read of this descriptor.
void wait_until_reading(ThreadId thread, int descriptor) {
  const std::string path = fmt::format("/proc/{}/task/{}/syscall", thread.pid, thread.tid);
  const std::string wanted = fmt::format("{} {:#x} ", SYS_read, descriptor);
  for (std::string line; !line.starts_with(wanted); ::sched_yield()) {
    std::ifstream file(path);
    ASSERT_TRUE(std::getline(file, line)) << path;
  }
}

std::vector<ThreadId> threads_of(pid_t pid, std::size_t at_least) {
  std::vector<ThreadId> threads;
  while (threads.size() < at_least) {
    threads.clear();
    perf::PerfConfig config;
    for (int tid = pid; tid < pid + 100; ++tid)
      if (::access(fmt::format("/proc/{}/task/{}", pid, tid).c_str(), F_OK) == 0)
        threads.push_back({pid, tid});
    ::sched_yield();
  }
  return threads;
}

class OfAProcess : public testing::TestWithParam<Hardware> {};

// Three threads wait, are recorded, work, and wait again. None of them is stopped by anybody.
TEST_P(OfAProcess, EveryThreadHasAHistoryOfItsOwn) {
  constexpr std::size_t kThreads = 3;
  Pipe go, hold;
  pid_t pid = ::fork();
  if (pid == 0) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        go.take();
        work(static_cast<unsigned>(10 + 20 * i), {false, true});
        hold.take();
      });
    hold.take();
    ::_exit(0);
  }
  std::vector<ThreadId> threads = threads_of(pid, kThreads + 1);
  ASSERT_EQ(threads.size(), kThreads + 1);
  wait_until_reading(threads[0], hold.ends[0]);
  for (std::size_t i = 1; i <= kThreads; ++i) wait_until_reading(threads[i], go.ends[0]);
  reset_truth();
  TraceProvider provider(perf::real_kernel(), GetParam(), large());
  auto started = provider.start_process(pid);
  ASSERT_TRUE(started) << started.error().to_string();
  for (std::size_t i = 0; i < kThreads; ++i) go.put();
  for (std::size_t i = 1; i <= kThreads; ++i) wait_until_reading(threads[i], hold.ends[0]);
  auto snapshots = provider.snapshot_process(pid, ~0ull);
  ASSERT_TRUE(snapshots) << snapshots.error().to_string();
  ASSERT_EQ(snapshots->size(), kThreads + 1);
  for (std::size_t i = 1; i <= kThreads; ++i) {
    const ThreadSnapshot& snapshot = (*snapshots)[i];
    ASSERT_EQ(snapshot.thread.tid, threads[i].tid);
    std::vector<Address> truth = read_truth(threads[i].tid);
    Shown shown = show(snapshot);
    EXPECT_GT(truth.size(), 1000u);
    EXPECT_TRUE(shown.breaks.empty());
    // Branches do not tell of a system call that did not come back.
    if (GetParam() == Hardware::kBts && shown.executed.size() + 1 == truth.size()) truth.pop_back();
    EXPECT_EQ(shown.executed.size(), truth.size());
    EXPECT_TRUE(shown.executed == truth);
    std::printf("    thread %zu: %zu instructions, all exact\n", i, truth.size());
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_P(OfAProcess, AForkIsASystemCallOfTheParentAndTheChildIsNotRecorded) {
  Child child({[] {
    work(10, {false, true});
    pid_t pid = ::fork();
    work(10, {false, true});
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
    work(10, {false, true});
  }});
  reset_truth();
  TraceProvider provider(perf::real_kernel(), GetParam(), large());
  ThreadId thread{child.pid(), child.pid()};
  ASSERT_TRUE(provider.start(thread));
  ASSERT_TRUE(child.run());
  auto snapshot = provider.snapshot(thread, Address{child.registers().rip}, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  Shown shown = show(*snapshot);
  EXPECT_TRUE(shown.breaks.empty());
  EXPECT_TRUE(shown.executed == read_truth());
  EXPECT_EQ(read_truth().size(), read_truth(child.pid()).size());
  std::printf("    %zu instructions, all exact\n", shown.executed.size());
}

// Both programs are shown, each with its own code.
TEST_P(OfAProcess, AProgramThatIsReplacedLeavesItsHistoryToTheNext) {
  Child child({[] {
    work(10, {false, true});
    ::execl("/bin/busybox", "busybox", "true", nullptr);
    ::_exit(1);
  }});
  reset_truth();
  TraceProvider provider(perf::real_kernel(), GetParam(), large());
  ThreadId thread{child.pid(), child.pid()};
  ASSERT_TRUE(provider.start(thread));
  // The kernel stops a traced thread with SIGTRAP behind an exec.
  ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, 0), child.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(WSTOPSIG(status), SIGTRAP);
  auto first = provider.snapshot(thread, Address{child.registers().rip}, ~0ull);
  ASSERT_TRUE(first) << first.error().to_string();
  Shown shown = show(*first);
  const std::size_t before = read_truth().size();
  EXPECT_GT(before, 1000u);
  expect_stretches(shown, read_truth());
  EXPECT_GE(shown.executed.size() + 4, before);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(child.step());
  auto second = provider.snapshot(thread, Address{child.registers().rip}, ~0ull);
  ASSERT_TRUE(second) << second.error().to_string();
  shown = show(*second);
  EXPECT_GE(shown.executed.size() + 4, read_truth().size());
  expect_stretches(shown, read_truth());
}

INSTANTIATE_TEST_SUITE_P(Hardware, OfAProcess, testing::Values(Hardware::kPt, Hardware::kBts),
                         [](const auto& info) {
                           return info.param == Hardware::kPt ? "Pt" : "Bts";
                         });

// --- markers and triggers ----------------------------------------------------------------------

// Functions and not data: the emulator makes no progress where watched data is stepped over.
volatile std::uint64_t reached_last;
__attribute__((noinline, noclone)) void reached(std::uint64_t i) { reached_last = i; }

TEST(MarkersInAHistory, StandWhereTheHitsWere) {
  Child child({[] {
    for (std::uint64_t i = 0; i < 20; ++i) {
      reached(i);
      work(2, {false, true});
    }
  }});
  perf::PerfConfig config = large();
  config.markers.resize(2);
  config.markers[0].address = {reinterpret_cast<std::uint64_t>(&fibonacci)};
  config.markers[1].address = {reinterpret_cast<std::uint64_t>(&reached)};
  reset_truth();
  perf::PerfEngine engine(perf::real_kernel(), Hardware::kPt, config);
  ThreadId thread{child.pid(), child.pid()};
  ASSERT_TRUE(engine.start(thread));
  ASSERT_TRUE(child.run());
  auto snapshot = engine.snapshot(thread, {{child.registers().rip}, false}, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  std::vector<Address> truth = read_truth();
  EXPECT_TRUE(show(*snapshot).executed == truth);
  std::size_t calls = 0, reached_count = 0;
  for (const auto& hit : engine.last_hits()) {
    ASSERT_TRUE(hit.place);
    const BranchRecord& record = snapshot->records[hit.place->value - snapshot->first.value];
    EXPECT_EQ(record.kind, RecordKind::kMarker);
    EXPECT_EQ(record.from, hit.hit.ip);
    ++(hit.marker == 0 ? calls : reached_count);
  }
  EXPECT_EQ(reached_count, 20u);
  EXPECT_EQ(calls, static_cast<std::size_t>(
                       std::count(truth.begin(), truth.end(), config.markers[0].address)));
  std::printf("    %zu and %zu hits, each in its place\n", calls, reached_count);
}

// The thread is not stopped: somebody else, who waited for the hit, takes the snapshot.
TEST(Triggers, ASnapshotIsTakenWhileTheThreadRunsOn) {
  Child child({[] {
    work(5, {false, true});
    reached(1);
    for (;;) work(1, {false, false});
  }});
  perf::PerfConfig config = large();
  perf::BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&reached)};
  reset_truth();
  perf::PerfEngine engine(perf::real_kernel(), Hardware::kPt, config);
  ThreadId thread{child.pid(), child.pid()};
  ASSERT_TRUE(engine.start(thread));
  auto alarm = perf::Alarm::open(perf::real_kernel(), child.pid(), spec);
  ASSERT_TRUE(alarm) << alarm.error().to_string();
  ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
  std::vector<perf::MarkerHit> hits;
  while (hits.empty()) hits = *alarm->wait(-1);
  auto snapshot = engine.snapshot(thread, {hits[0].ip, false}, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  Shown shown = show(*snapshot);
  EXPECT_EQ(hits[0].ip, spec.address);
  std::vector<Address> truth = read_truth();
  // All that led to the hit, and maybe more: it ran on. It may have done so while the snapshot was
  // taken, which nobody recorded: then the call of the function is the newest branch.
  const bool ran_on =
      std::find(shown.executed.begin(), shown.executed.end(), hits[0].ip) != shown.executed.end();
  ASSERT_GE(snapshot->records.size(), 2u);
  EXPECT_TRUE(ran_on || (snapshot->records.end() - 2)->to == hits[0].ip);
  ASSERT_LE(shown.executed.size(), truth.size());
  EXPECT_TRUE(std::equal(shown.executed.begin(), shown.executed.end(), truth.begin()));
}

}  // namespace
}  // namespace tailtrace
