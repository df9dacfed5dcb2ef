// What Intel PT has beside the path, recorded live: the clocks between the time stamps, held
// against time stamps that the program took itself, and what programs write into their trace.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include <algorithm>

#include "plugin/engines/perf/lossless.h"
#include "plugin/engines/perf/pt_settings.h"
#include "tests/guest/config.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

constexpr std::size_t kStamps = 200;

// Shared with the child. An indirect call, so that the trace has a packet for each.
std::uint64_t* stamps;
__attribute__((noinline)) void stamp(std::size_t i) { stamps[i] = __rdtsc(); }
void (*volatile take_stamp)(std::size_t) = stamp;

void work_and_stamp() {
  for (std::size_t i = 0; i < kStamps; ++i) {
    work(1, {false, false});
    take_stamp(i);
  }
}

// The times that the history has for the calls of stamp().
std::vector<std::uint64_t> times_of_stamps(const ThreadSnapshot& snapshot) {
  std::vector<std::uint64_t> times;
  std::uint64_t before = 0;
  for (const BranchRecord& record : snapshot.records) {
    EXPECT_TRUE(record.time == 0 || record.time >= before) << record.time << " < " << before;
    before = std::max(before, record.time);
    if (record.to.value == reinterpret_cast<std::uint64_t>(&stamp)) times.push_back(record.time);
  }
  return times;
}

// How far behind the program's own clock the trace's is, in ticks: the median. None is ahead.
std::int64_t lag_with(const char* settings) {
  Child child({work_and_stamp});
  PerfConfig config = config_of(1 << 20);
  EXPECT_TRUE(apply_pt_settings(settings, config));
  reset_truth();
  PerfEngine engine(real_kernel(), Hardware::kPt, config);
  const ThreadId thread{child.pid(), child.pid()};
  auto started = engine.start(thread);
  EXPECT_TRUE(started) << started.error().to_string();
  EXPECT_TRUE(child.run());
  auto snapshot = engine.snapshot(thread, {{child.registers().rip}, false}, ~0ull);
  EXPECT_TRUE(snapshot) << snapshot.error().to_string();
  if (!snapshot) return 0;
  EXPECT_TRUE(show(*snapshot).executed == read_truth());
  const std::vector<std::uint64_t> times = times_of_stamps(*snapshot);
  EXPECT_EQ(times.size(), kStamps);
  std::vector<std::int64_t> lags;
  for (std::size_t i = 0; i < std::min(times.size(), kStamps); ++i)
    lags.push_back(static_cast<std::int64_t>(stamps[i] - times[i]));
  std::ranges::sort(lags);
  const auto ahead = static_cast<std::size_t>(std::ranges::lower_bound(lags, 0) - lags.begin());
  EXPECT_EQ(ahead, 0u) << settings << ", by up to " << -lags.front();
  const std::int64_t median = lags.empty() ? 0 : lags[lags.size() / 2];
  std::printf("    %s: %ld ticks behind\n", settings, static_cast<long>(median));
  return median;
}

TEST(PtClocks, BetweenTimeStampsAreThoseOfTheProgram) {
  stamps =
      static_cast<std::uint64_t*>(::mmap(nullptr, kStamps * sizeof *stamps, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(stamps, MAP_FAILED);
  const std::int64_t stamped = lag_with("tsc");
  const std::int64_t crystal = lag_with("mtc_period=9");
  const std::int64_t finer = lag_with("mtc_period=6");
  const std::int64_t cycles = lag_with("cyc");
  const std::int64_t both = lag_with("mtc_period=9,cyc,psb_period=0");
  for (std::int64_t lag : {crystal, finer, cycles, both}) EXPECT_LT(lag, stamped / 4);
  ::munmap(stamps, kStamps * sizeof *stamps);
}

constexpr std::uint64_t kWritten[] = {0, 1, 0x1234567890abcdef, ~0ull};

// The emulated processor does not know the instruction: the stand-in executes it.
void write_into_trace() {
  for (std::uint64_t value : kWritten) {
    work(2, {false, true});
    asm volatile("ptwrite %0" ::"r"(value));
    asm volatile("ptwritel %k0" ::"r"(value));
  }
}

class PtwriteSink final : public pt::Sink {
 public:
  pt::Detail detail() const override { return pt::Detail::kEvents; }
  void instructions(std::span<const Instruction>, const pt::RunState&) override {}
  void event(const pt::Event& event) override {
    if (event.kind != pt::EventKind::kPtwrite) return;
    payloads.push_back(event.payload);
    places.push_back(event.ip);
  }
  void gap(const pt::Gap& gap) override { ADD_FAILURE() << pt::error_text(gap.error); }

  std::vector<std::uint64_t> payloads;
  std::vector<Address> places;
};

TEST(Ptwrite, IsInTheTraceWhereItWasExecuted) {
  TempFolder folder;
  Child child({write_into_trace});
  PerfConfig config = config_of(1 << 20);
  ASSERT_TRUE(apply_pt_settings("ptw,cyc,mtc_period=9,psb_period=0", config));
  reset_truth();
  auto lossless = Lossless::start(real_kernel(), Hardware::kPt, config, {child.pid(), child.pid()},
                                  folder.file("trace"));
  ASSERT_TRUE(lossless) << lossless.error().to_string();
  ASSERT_TRUE(child.run());
  auto snapshot = lossless->snapshot({child.registers().rip}, 1 << 20);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  const std::vector<Address> truth = read_truth();
  EXPECT_TRUE(show(*snapshot).executed == truth);
  auto trace = read_file(folder.file("trace"), 1 << 20);
  ASSERT_TRUE(trace);
  const pt::DecoderConfig decoder =
      pt_decoder_config(read_machine({}).cpu, *read_pmu({}, "intel_pt"), config);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t value : kWritten) {
    expected.push_back(value);
    expected.push_back(value & 0xffffffff);
  }
  for (auto make : {pt::make_flow_decoder, pt::make_libipt_decoder}) {
    PtwriteSink sink;
    make(*snapshot->code, decoder)->decode(*trace, sink);
    EXPECT_EQ(sink.payloads, expected);
    for (Address place : sink.places)
      EXPECT_TRUE(std::ranges::find(truth, place) != truth.end()) << std::hex << place.value;
  }
}

}  // namespace
}  // namespace tailtrace::perf
