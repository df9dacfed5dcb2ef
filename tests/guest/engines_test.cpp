// The perf engines against a real kernel with stand-in PMUs whose traces are true: what is decoded
// must be exactly what the kernel saw executed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "plugin/engines/perf/perf_engine.h"
#include "plugin/engines/perf/pt_settings.h"
#include "tests/guest/config.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"

extern "C" const char __start_traced[], __stop_traced[];  // the linker's

namespace tailtrace::perf {
namespace {

// One child, one engine, from stop to stop.
struct Session {
  Session(Hardware hardware, PerfConfig config, std::vector<std::function<void()>> parts)
      : child(std::move(parts)),
        engine(real_kernel(), hardware, std::move(config)),
        thread{child.pid(), child.pid()} {
    reset_truth();
    auto started = engine.start(thread);
    EXPECT_TRUE(started) << started.error().to_string();
  }
  ThreadSnapshot snapshot() {
    Address pc{child.registers().rip};
    auto taken = engine.snapshot(thread, {pc, false}, ~0ull);
    EXPECT_TRUE(taken) << taken.error().to_string();
    if (!taken) return {};
    EXPECT_FALSE(taken->records.empty());
    if (taken->records.empty()) return {};
    EXPECT_EQ(taken->records.back().kind, RecordKind::kDisable);
    EXPECT_EQ(taken->records.back().from, pc);
    return std::move(*taken);
  }

  Child child;
  PerfEngine engine;
  ThreadId thread;
};

void expect_all(const ThreadSnapshot& snapshot) {
  Shown shown = show(snapshot);
  std::vector<Address> truth = read_truth();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(shown.breaks, std::vector<std::size_t>{});
  ASSERT_EQ(shown.executed.size(), truth.size());
  EXPECT_TRUE(shown.executed == truth);
  std::printf("    %zu instructions, all exact\n", truth.size());
}

void expect_tail(const ThreadSnapshot& snapshot, std::size_t at_least) {
  Shown shown = show(snapshot);
  std::vector<Address> truth = read_truth();
  EXPECT_FALSE(snapshot.complete);
  EXPECT_EQ(shown.breaks, std::vector<std::size_t>{});
  EXPECT_GE(shown.executed.size(), at_least);
  ASSERT_LT(shown.executed.size(), truth.size());
  EXPECT_TRUE(std::equal(shown.executed.rbegin(), shown.executed.rend(), truth.rbegin()));
  std::printf("    the last %zu of %zu instructions, all exact\n", shown.executed.size(),
              truth.size());
}

// Taking another snapshot does not move what an earlier one showed.
void expect_same_positions(const ThreadSnapshot& older, const ThreadSnapshot& newer) {
  ASSERT_GE(newer.end().value, older.end().value - older.records.size());
  std::size_t compared = 0;
  // The last records of the older one say where it stood, and belong to it alone.
  for (std::size_t i = 0; i + 3 < older.records.size(); ++i) {
    std::uint64_t position = older.first.value + i;
    if (position < newer.first.value || position >= newer.end().value) continue;
    // A stretch that lost its beginning begins with where reading began, in the middle of a run.
    if (position <= newer.first.value + 1 || i < 2) continue;
    if (older.records[i].kind == RecordKind::kGap) continue;  // may be filled in
    ASSERT_EQ(older.records[i], newer.records[position - newer.first.value]) << position;
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

TEST(Pt, ShowsAllOfAShortExecution) {
  Session session(Hardware::kPt, config_of(1 << 20), {[] { work(200); }});
  ASSERT_TRUE(session.child.run());
  expect_all(session.snapshot());
}

TEST(Pt, ShowsTheTailThatASmallBufferHolds) {
  Session session(Hardware::kPt, config_of(4096), {[] { work(500); }});
  ASSERT_TRUE(session.child.run());
  expect_tail(session.snapshot(), 1000);
}

TEST(Pt, NeedsNoReturnCompression) {
  PerfConfig config = config_of(16384);
  config.return_compression = false;
  Session session(Hardware::kPt, config, {[] { work(500); }});
  ASSERT_TRUE(session.child.run());
  expect_tail(session.snapshot(), 1000);
}

TEST(Pt, GoesOnFromStopToStop) {
  for (std::uint64_t buffer : {1u << 20, 4096u}) {
    Session session(Hardware::kPt, config_of(buffer),
                    {[] { work(300); }, [] { work(4); }, [] { work(30); }, [] { work(1); }});
    ThreadSnapshot before;
    for (int stop = 0; stop < 4; ++stop) {
      ASSERT_TRUE(session.child.run());
      ThreadSnapshot now = session.snapshot();
      if (stop > 0) expect_same_positions(before, now);
      before = std::move(now);
    }
    buffer == 4096 ? expect_tail(before, 1000) : expect_all(before);
  }
}

// The stand-in shows of the kernel how system calls enter it; the code is that in memory.
TEST(Pt, ShowsTheKernelsCodeWhereItIsAskedTo) {
  PerfConfig config = config_of(1 << 20);
  config.kernel = true;
  Session session(Hardware::kPt, config, {[] { work(20, {false, true}); }});
  ASSERT_TRUE(session.child.run());
  ThreadSnapshot snapshot = session.snapshot();
  expect_all(snapshot);
  std::size_t in_kernel = 0;
  for (Address address : show(snapshot).executed) in_kernel += address.value >> 63;
  EXPECT_GT(in_kernel, 0u);
  std::printf("    %zu of them in the kernel\n", in_kernel);
}

TEST(Pt, FollowsADebuggerThatSteps) {
  Session session(Hardware::kPt, config_of(1 << 20), {[] { work(20); }});
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(session.child.step());
  expect_all(session.snapshot());
}

TEST(Pt, OverflowsAreGapsAndTheRestIsExact) {
  ModuleParameter every("ovf_every", "5000");
  Session session(Hardware::kPt, config_of(1 << 20), {[] { work(100); }});
  ASSERT_TRUE(session.child.run());
  ThreadSnapshot snapshot = session.snapshot();
  Shown shown = show(snapshot);
  EXPECT_GT(shown.breaks.size(), 3u);
  expect_stretches(shown, read_truth());
}

// The thread leaves its CPU, and calls the system, while nothing is recorded.
TEST(Pt, OverflowsThatLastOverASwitchAreGapsToo) {
  ModuleParameter every("ovf_every", "5000"), lose("ovf_lose", "2500");
  Session session(Hardware::kPt, config_of(1 << 20), {[] { work(100, {false, true}); }});
  ASSERT_TRUE(session.child.run());
  ThreadSnapshot snapshot = session.snapshot();
  Shown shown = show(snapshot);
  EXPECT_GT(shown.breaks.size(), 3u);
  expect_stretches(shown, read_truth());
}

TEST(Pt, AddressFiltersLeaveOnlyWhatIsInside) {
  char self[4096];
  ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  ASSERT_GT(size, 0);
  self[size] = 0;
  const auto begin = reinterpret_cast<std::uint64_t>(__start_traced);
  const auto end = reinterpret_cast<std::uint64_t>(__stop_traced);
  MemoryMap map = MemoryMap::of_process(::getpid());
  const MemoryRegion* region = map.find({begin});
  ASSERT_NE(region, nullptr);
  PerfConfig config = config_of(1 << 20);
  config.filters = {fmt::format("filter {:#x}/{:#x}@{}",
                                begin - region->begin.value + region->offset_bytes, end - begin,
                                self)};
  Session session(Hardware::kPt, config, {[] { work(50); }});
  ASSERT_TRUE(session.child.run());
  Shown shown = show(session.snapshot());
  std::vector<Address> truth = read_truth();
  std::erase_if(truth, [&](Address a) { return a.value < begin || a.value >= end; });
  EXPECT_GT(truth.size(), 100u);
  EXPECT_TRUE(shown.executed == truth);
  std::printf("    %zu instructions inside, all exact\n", shown.executed.size());
}

volatile std::uint64_t counter;
__attribute__((noinline)) void begin_here() { counter = counter + 1; }
__attribute__((noinline)) void end_here() { counter = counter - 1; }

// Linux 6.13 brought it, and Debian brought it back into its 6.12.
bool has_aux_pause() {
  utsname system{};
  int major = 0, minor = 0;
  EXPECT_EQ(::uname(&system), 0);
  EXPECT_EQ(std::sscanf(system.release, "%d.%d", &major, &minor), 2);
  return std::pair(major, minor) >= std::pair(6, 12);
}

TEST(Pt, BreakpointsLetTheTraceGoOnAndPauseIt) {
  PerfConfig config = config_of(65536);
  config.resume_at = Address{reinterpret_cast<std::uint64_t>(&begin_here)};
  config.pause_at = Address{reinterpret_cast<std::uint64_t>(&end_here)};
  Child child({[] {
    work(10, {false, false});
    begin_here();
    work(3, {false, false});
    end_here();
    work(10, {false, false});
  }});
  PerfEngine engine(real_kernel(), Hardware::kPt, config);
  ThreadId thread{child.pid(), child.pid()};
  reset_truth();
  auto started = engine.start(thread);
  if (!has_aux_pause()) {
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().why, testing::HasSubstr("AUX pause and resume"));
    return;
  }
  ASSERT_TRUE(started) << started.error().to_string();
  ASSERT_TRUE(child.run());
  auto snapshot = engine.snapshot(thread, {{child.registers().rip}, false}, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  Shown shown = show(*snapshot);
  std::vector<Address> truth = read_truth();
  auto begin = std::find(truth.begin(), truth.end(), *config.resume_at);
  auto end = std::find(begin, truth.end(), *config.pause_at);
  ASSERT_NE(end, truth.end());
  EXPECT_TRUE(shown.executed == std::vector<Address>(begin, end));
  std::printf("    %zu instructions between, all exact\n", shown.executed.size());
}

TEST(Bts, ShowsAllOfAShortExecutionWithItsSignals) {
  Session session(Hardware::kBts, config_of(1 << 20), {[] { work(200); }});
  EXPECT_TRUE(session.engine.take_remarks().empty());
  ASSERT_TRUE(session.child.run());
  expect_all(session.snapshot());
}

TEST(Bts, ShowsTheTailThatASmallAreaHolds) {
  for (auto [buffer, rounds] : {std::pair(4096u, 40u), {8192u, 80u}, {65536u, 600u}}) {
    Session session(Hardware::kBts, config_of(buffer), {[n = rounds] { work(n, {false, true}); }});
    ASSERT_TRUE(session.child.run());
    expect_tail(session.snapshot(), 300);
  }
}

TEST(Bts, GoesOnFromStopToStop) {
  for (std::uint64_t buffer : {1u << 20, 16384u}) {
    Session session(Hardware::kBts, config_of(buffer),
                    {[] { work(10); }, [] { work(3); }, [] { work(6); }, [] { work(100); }});
    ThreadSnapshot before;
    for (int stop = 0; stop < 4; ++stop) {
      ASSERT_TRUE(session.child.run());
      ThreadSnapshot now = session.snapshot();
      if (stop > 0) expect_same_positions(before, now);
      before = std::move(now);
    }
    Shown shown = show(before);
    // What the last part did does not fit into the small one.
    if (buffer != 16384) expect_all(before);
    EXPECT_EQ(shown.breaks.empty(), buffer != 16384);
    expect_stretches(shown, read_truth());
  }
}

TEST(Bts, LargeAreasAreOfferedInTheSizeThatIsGot) {
  Session session(Hardware::kBts, config_of(64 << 20), {[] { work(3); }});
  // Less where the kernel has no such piece of memory any more; then it says so.
  const std::uint64_t got = *session.engine.buffer_bytes(session.thread);
  EXPECT_LE(got, 4u << 20);
  EXPECT_EQ(session.engine.take_remarks().empty(), got == 4u << 20);
}

TEST(BtsSamples, AreTakenWhereTheAreaIsRefused) {
  ModuleParameter no_leaks("bts_leak", "N");
  for (std::uint64_t ring : {8192u, 32768u, 1u << 20}) {
    Child child({[] { work(100, {false, true}); }});
    reset_truth();
    ThreadId thread{child.pid(), child.pid()};
    auto recorder = record_bts_samples(real_kernel(), config_of(ring), thread, pc_of("", thread));
    ASSERT_TRUE(recorder) << recorder.error().to_string();
    ProcessCode code(child.pid());
    ASSERT_TRUE(code.update());
    ASSERT_TRUE(child.run());
    ASSERT_TRUE((*recorder)->refresh({code.image(), {}}));
    ThreadSnapshot snapshot;
    snapshot.code = code.image();
    (*recorder)->fill({{child.registers().rip}, false}, snapshot);
    ring == 1 << 20 ? expect_all(snapshot) : expect_tail(snapshot, 1000);
  }
}

TEST(Lbr, ShowsStretchesThatEndAtTheLastSample) {
  PerfConfig config = config_of(1 << 20);
  config.lbr_period = 16;
  Session session(Hardware::kLbr, config, {[] { work(100); }});
  ASSERT_TRUE(session.child.run());
  Shown shown = show(session.snapshot());
  EXPECT_GT(shown.executed.size(), 100u);
  ASSERT_FALSE(shown.breaks.empty());
  EXPECT_EQ(shown.breaks.back(), shown.executed.size()) << "nothing is known behind the last one";
  expect_stretches(shown, read_truth());
}

TEST(Refusals, ASecondTracerIsToldWhoTheFirstIs) {
  Session session(Hardware::kPt, config_of(65536), {[] { work(3); }});
  PerfEngine second(real_kernel(), Hardware::kPt, config_of(65536));
  auto started = second.start(session.thread);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().what, testing::HasSubstr("busy"));
  EXPECT_THAT(started.error().why, testing::HasSubstr("this process"));
}

TEST(Refusals, WishesThatTheProcessorDoesNotHaveAreNamed) {
  for (auto [setting, why] :
       {std::pair{"mtc_period=1", "caps/mtc_periods of this processor has 0, 3"},
        {"event", "there is no format/event"},
        {"psb_period=7", "caps/psb_periods of this processor has 0, 1, 2"},
        {"cyc_thresh=9", "caps/cycle_thresholds of this processor has"}}) {
    Child child({});
    PerfConfig config = config_of(65536);
    ASSERT_TRUE(apply_pt_settings(setting, config));
    PerfEngine engine(real_kernel(), Hardware::kPt, config);
    auto started = engine.start({child.pid(), child.pid()});
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().why, testing::HasSubstr(why));
  }
}

struct Injected {
  const char* name;
  const char* flags;
  GapReason reason;
};

class Holes : public testing::TestWithParam<std::tuple<Hardware, Injected>> {};

// The kernel says of one stretch on a CPU that its trace is not whole.
constexpr std::size_t kMostLost_insns = 100;

TEST_P(Holes, AreGapsWithTheirCauseWhereTheyAre) {
  auto [hardware, injected] = GetParam();
  Session session(hardware, config_of(1 << 20),
                  {[] {
                     work(20, {false, true});
                   },
                   [] {
                     work(20, {false, true});
                   },
                   [] {
                     work(20, {false, true});
                   }});
  ASSERT_TRUE(session.child.run());
  const std::size_t before = read_truth().size();
  (void)session.snapshot();
  {
    ModuleParameter flags("inject_flags", injected.flags);
    ModuleParameter count("inject_count", "1");
    ASSERT_TRUE(session.child.run());
  }
  const std::size_t middle = read_truth().size();
  ASSERT_TRUE(session.child.run());
  ThreadSnapshot snapshot = session.snapshot();
  Shown shown = show(snapshot);
  ASSERT_EQ(shown.breaks.size(), 1u);
  // Whichever time it left the CPU in the second part; what is lost is straight code at most.
  EXPECT_GE(shown.breaks.front() + kMostLost_insns, before);
  EXPECT_LE(shown.breaks.front(), middle);
  EXPECT_EQ(shown.reasons.front(), injected.reason);
  EXPECT_GE(shown.executed.size() + kMostLost_insns, read_truth().size());
  expect_stretches(shown, read_truth());
}

INSTANTIATE_TEST_SUITE_P(
    Kernel, Holes,
    testing::Combine(testing::Values(Hardware::kPt, Hardware::kBts),
                     testing::Values(Injected{"Truncated", "1", GapReason::kTruncated},
                                     Injected{"Partial", "4", GapReason::kPartial},
                                     Injected{"Collision", "8", GapReason::kCollision})),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) == Hardware::kPt ? "Pt" : "Bts") +
             std::get<1>(info.param).name;
    });

TEST(Exit, ATraceStaysReadableWhenTheThreadIsGone) {
  Session session(Hardware::kPt, config_of(1 << 20), {[] { work(10); }});
  ASSERT_TRUE(session.child.run());
  ASSERT_TRUE(session.engine.head(session.thread));
  EXPECT_FALSE(session.child.run());
  auto taken = session.engine.snapshot(session.thread, {}, ~0ull);
  ASSERT_TRUE(taken) << taken.error().to_string();
  Shown shown = show(*taken);
  std::vector<Address> truth = read_truth();
  ASSERT_FALSE(shown.executed.empty());
  EXPECT_TRUE(std::equal(shown.executed.begin(), shown.executed.end(), truth.begin()));
  EXPECT_EQ(shown.executed.back(), truth.back());
}

}  // namespace
}  // namespace tailtrace::perf
