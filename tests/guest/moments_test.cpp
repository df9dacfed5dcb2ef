// Stops, ends and rights at moments that nobody chose: 500 of them on each kernel.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "decoder/history/history.h"
#include "plugin/provider/trace_provider.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"

namespace tailtrace {
namespace {

using perf::Hardware;

perf::PerfConfig small() {
  perf::PerfConfig config;
  config.buffer_bytes = 4096;
  config.records.ring_records = 4096;
  config.return_compression = false;  // fewer instructions in a page, and less to decode
  return config;
}

void pause_for(unsigned microseconds) {
  timespec time{0, microseconds * 1000L};
  ::nanosleep(&time, nullptr);
}

// What was executed since the log was emptied is the end of the history, as far back as the buffer
// goes, and leads to where the thread stands. Returns how much of it is shown.
std::size_t expect_ends_with(const History& history, const std::vector<Address>& truth) {
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  // A thread that was not on a CPU yet executed nothing.
  EXPECT_TRUE(cursor.valid() || truth.empty());
  std::size_t compared = 0;
  for (; cursor.valid() && compared < truth.size() && !cursor.item().is_gap; cursor.prev()) {
    EXPECT_EQ(cursor.item().instruction.address, truth[truth.size() - 1 - compared]) << compared;
    if (testing::Test::HasFailure()) return compared;
    ++compared;
  }
  const bool maybe_overwritten =
      cursor.valid() && cursor.item().is_gap && cursor.item().gap.reason == GapReason::kOverwritten;
  EXPECT_TRUE(compared > 0 || truth.empty() || maybe_overwritten);
  return compared;
}

class AtRandomMoments : public testing::TestWithParam<Hardware> {};

TEST_P(AtRandomMoments, EveryStopHasASnapshotThatEndsWhereTheThreadStands) {
  constexpr int kStops = 240;
  Child child({[] {
    for (;;) work(1, {false, true});
  }});
  TraceProvider provider(perf::real_kernel(), GetParam(), small());
  ASSERT_TRUE(provider.start({child.pid(), child.pid()}));
  std::mt19937 random(9);
  std::size_t compared = 0;
  for (int stop = 0; stop < kStops && !HasFailure(); ++stop) {
    reset_truth();
    ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
    pause_for(random() % 2000);
    ::kill(child.pid(), SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid(), &status, 0), child.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    Address pc{child.registers().rip};
    auto snapshot = provider.snapshot({child.pid(), child.pid()}, pc, 4096);
    ASSERT_TRUE(snapshot) << snapshot.error().to_string();
    ASSERT_FALSE(snapshot->records.empty());
    ASSERT_EQ(snapshot->records.back().from, pc);
    History history(std::make_shared<ThreadSnapshot>(std::move(*snapshot)));
    ASSERT_EQ(history.stop(), pc);
    compared += expect_ends_with(history, read_truth());
  }
  EXPECT_GT(compared, 20u * kStops);
}

// The history of a thread that is gone: where it would stand is not known.
void expect_history_of_the_dead(perf::PerfEngine& engine, ThreadId thread) {
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(thread.pid), &info, WEXITED | WNOWAIT), 0);
  auto snapshot = engine.snapshot(thread, {}, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  Shown shown = show(*snapshot);
  ASSERT_LE(shown.breaks.size(), 1u);
  EXPECT_TRUE(shown.breaks.empty() || shown.breaks[0] == shown.executed.size());
  std::vector<Address> truth = read_truth();
  auto at = std::find_end(truth.begin(), truth.end(), shown.executed.begin(), shown.executed.end());
  EXPECT_TRUE(shown.executed.empty() || at != truth.end());
}

TEST_P(AtRandomMoments, AThreadThatIsKilledLeavesItsTraceBehind) {
  constexpr int kKills = 5;
  std::mt19937 random(10);
  for (int i = 0; i < kKills && !HasFailure(); ++i) {
    Child child({[] {
      for (;;) work(1, {false, true});
    }});
    reset_truth();
    perf::PerfEngine engine(perf::real_kernel(), GetParam(), small());
    ThreadId thread{child.pid(), child.pid()};
    ASSERT_TRUE(engine.start(thread));
    ASSERT_TRUE(engine.head(thread));  // its code is read while it is there
    ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
    pause_for(random() % 2000);
    ::kill(child.pid(), SIGKILL);
    expect_history_of_the_dead(engine, thread);
  }
}

TEST_P(AtRandomMoments, AThreadThatEndsLeavesItsTraceBehind) {
  constexpr int kEnds = 5;
  std::mt19937 random(11);
  for (int i = 0; i < kEnds && !HasFailure(); ++i) {
    Child child({[rounds = random() % 12] {
      work(static_cast<unsigned>(rounds), {false, true});
      ::_exit(0);
    }});
    reset_truth();
    perf::PerfEngine engine(perf::real_kernel(), GetParam(), small());
    ThreadId thread{child.pid(), child.pid()};
    ASSERT_TRUE(engine.start(thread));
    ASSERT_TRUE(engine.head(thread));
    ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
    expect_history_of_the_dead(engine, thread);
  }
}

INSTANTIATE_TEST_SUITE_P(Hardware, AtRandomMoments, testing::Values(Hardware::kPt, Hardware::kBts),
                         [](const auto& info) {
                           return info.param == Hardware::kPt ? "Pt" : "Bts";
                         });

void set_paranoid(int level) {
  std::ofstream("/proc/sys/kernel/perf_event_paranoid") << level << std::endl;
}

// Runs the checks as a user without rights; the first line that fails is the exit status.
int as_nobody(const std::function<int()>& checks) {
  pid_t pid = ::fork();
  if (pid == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(120);
    ::prctl(PR_SET_DUMPABLE, 1);
    ::_exit(checks());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 121;
}

#define REQUIRE_OR_RETURN(condition) \
  if (!(condition)) return __LINE__ % 100 + 1

TEST(Rights, AUserMayTraceOwnThreadsWithPtAndBranchSamples) {
  set_paranoid(2);
  EXPECT_EQ(0, as_nobody([] {
              Child child({[] { work(3); }});
              ThreadId thread{child.pid(), child.pid()};
              {
                TraceProvider pt(perf::real_kernel(), Hardware::kPt, small());
                REQUIRE_OR_RETURN(pt.start(thread));
              }
              TraceProvider bts(perf::real_kernel(), Hardware::kBts, small());
              REQUIRE_OR_RETURN(bts.start(thread));
              auto remarks = bts.take_remarks();
              REQUIRE_OR_RETURN(remarks.size() == 1);
              REQUIRE_OR_RETURN(remarks[0].why.find("intel_bts shows kernel addresses") == 0);
              REQUIRE_OR_RETURN(child.run());
              Address pc{child.registers().rip};
              auto snapshot = bts.snapshot(thread, pc, ~0ull);
              REQUIRE_OR_RETURN(snapshot);
              REQUIRE_OR_RETURN(snapshot->records.size() > 10);
              return 0;
            }));
}

TEST(Rights, TheLevelThatForbidsItIsNamed) {
  set_paranoid(3);
  EXPECT_EQ(0, as_nobody([] {
              Child child({});
              TraceProvider provider(perf::real_kernel(), std::nullopt, small());
              auto started = provider.start({child.pid(), child.pid()});
              REQUIRE_OR_RETURN(!started);
              REQUIRE_OR_RETURN(started.error().code == ErrorCode::kPermission);
              REQUIRE_OR_RETURN(started.error().why.find("kernel.perf_event_paranoid is 3") !=
                                std::string::npos);
              REQUIRE_OR_RETURN(started.error().fix == "sudo sysctl kernel.perf_event_paranoid=2");
              return 0;
            }));
}

TEST(Rights, ABufferBeyondTheLimitOfLockedMemoryIsHalved) {
  set_paranoid(2);
  EXPECT_EQ(0, as_nobody([] {
              Child child({});
              perf::PerfConfig config = small();
              config.buffer_bytes = 64 << 20;
              TraceProvider provider(perf::real_kernel(), Hardware::kPt, config);
              ThreadId thread{child.pid(), child.pid()};
              REQUIRE_OR_RETURN(provider.start(thread));
              auto got = provider.engine()->buffer_bytes(thread);
              REQUIRE_OR_RETURN(got && *got < (64 << 20) && *got >= 65536);
              auto remarks = provider.take_remarks();
              REQUIRE_OR_RETURN(remarks.size() == 1);
              REQUIRE_OR_RETURN(remarks[0].why.find("65536 KiB were asked for") == 0);
              return 0;
            }));
}

}  // namespace
}  // namespace tailtrace
