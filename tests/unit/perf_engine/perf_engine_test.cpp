#include "plugin/engines/perf/perf_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "plugin/engines/perf/overlap.h"
#include "plugin/engines/perf/pt_settings.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

const ThreadId kSelf{::getpid(), ::getpid()};

PerfConfig small() {
  PerfConfig config;
  config.records.ring_records = 1 << 10;
  config.buffer_bytes = 16384;
  return config;
}

void put_pt(FakeKernel& kernel) {
  kernel.put_pmu("intel_pt", 8);
  const std::string folder = "/sys/bus/event_source/devices/intel_pt/";
  for (auto [name, field] : {std::pair{"pt", "config:0"},
                             {"branch", "config:13"},
                             {"tsc", "config:10"},
                             {"psb_period", "config:24-27"},
                             {"noretcomp", "config:11"}})
    kernel.put_file(folder + "format/" + name, std::string(field) + "\n");
  kernel.put_file(folder + "caps/psb_periods", "3f\n");
}

TEST(PerfEngine, TakesBranchSamplesWhereTheAreaIsRefusedAndSaysSo) {
  FakeKernel kernel;
  kernel.put_pmu("intel_bts", 9);
  kernel.on_open = [](const perf_event_attr& attr, Target) { return attr.type == 9 ? -EACCES : 0; };
  PerfEngine engine(kernel, Hardware::kBts, small());
  ASSERT_TRUE(engine.start(kSelf));
  ASSERT_GE(kernel.opened().size(), 2u);
  const perf_event_attr& attr = kernel.opened()[1].attr;
  EXPECT_EQ(attr.type, static_cast<std::uint32_t>(PERF_TYPE_HARDWARE));
  EXPECT_EQ(attr.config, static_cast<std::uint64_t>(PERF_COUNT_HW_BRANCH_INSTRUCTIONS));
  EXPECT_EQ(attr.sample_period, 1u);
  EXPECT_EQ(attr.sample_type, kSampleIp | kSampleAddr);
  EXPECT_EQ(attr.exclude_kernel, 1u);
  auto remarks = engine.take_remarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0].why, HasSubstr("kernel addresses"));
  EXPECT_THAT(remarks[0].now, HasSubstr("branch samples"));
  EXPECT_TRUE(engine.take_remarks().empty());
}

TEST(PerfEngine, TellsOfASmallerBuffer) {
  FakeKernel kernel;
  put_pt(kernel);
  kernel.on_map = [](std::uint64_t offset, std::size_t size, int) {
    return offset != 0 && size > 4096 ? -EPERM : 0;
  };
  PerfEngine engine(kernel, Hardware::kPt, small());
  ASSERT_TRUE(engine.start(kSelf));
  EXPECT_EQ(*engine.buffer_bytes(kSelf), 4096u);
  auto remarks = engine.take_remarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0].what, HasSubstr("16 KiB"));
  EXPECT_EQ(remarks[0].now, "4 KiB are used");
}

TEST(PerfEngine, StartsOnceAndForgetsWhatIsStopped) {
  FakeKernel kernel;
  put_pt(kernel);
  PerfEngine engine(kernel, Hardware::kPt, small());
  EXPECT_FALSE(engine.is_recording(kSelf));
  EXPECT_EQ(engine.stop(kSelf).error().code, ErrorCode::kGone);
  ASSERT_TRUE(engine.start(kSelf));
  const std::size_t opened = kernel.opened().size();
  ASSERT_TRUE(engine.start(kSelf));
  EXPECT_EQ(kernel.opened().size(), opened);
  EXPECT_TRUE(engine.is_recording(kSelf));
  ASSERT_TRUE(engine.stop(kSelf));
  EXPECT_EQ(engine.snapshot(kSelf, {}, 10).error().code, ErrorCode::kGone);
  EXPECT_EQ(engine.head(kSelf).error().code, ErrorCode::kGone);
}

TEST(PerfEngine, DoesNothingUntilItIsAsked) {
  FakeKernel kernel;
  put_pt(kernel);
  PerfEngine engine(kernel, Hardware::kPt, small());
  ASSERT_TRUE(engine.start(kSelf));
  EXPECT_TRUE(kernel.controlled().empty());
  ASSERT_TRUE(engine.snapshot(kSelf, {{0x1234}, false}, 10));
  // The head is right only once the event was disabled.
  ASSERT_EQ(kernel.controlled().size(), 2u);
  EXPECT_EQ(kernel.controlled()[0].request, static_cast<unsigned long>(PERF_EVENT_IOC_DISABLE));
  EXPECT_EQ(kernel.controlled()[1].request, static_cast<unsigned long>(PERF_EVENT_IOC_ENABLE));
}

TEST(PerfEngine, ATrialSwitchesNothingOn) {
  for (Hardware hardware : {Hardware::kPt, Hardware::kBts, Hardware::kLbr}) {
    FakeKernel kernel;
    put_pt(kernel);
    kernel.put_pmu("intel_bts", 9);
    ASSERT_TRUE(try_hardware(kernel, hardware));
    EXPECT_EQ(kernel.opened().front().attr.disabled, 1u);
    EXPECT_TRUE(kernel.controlled().empty());
    kernel.on_open = [](const perf_event_attr&, Target) { return -EBUSY; };
    EXPECT_THAT(try_hardware(kernel, hardware).error().what, HasSubstr("busy"));
  }
}

TEST(PerfEngine, AnEmptyBufferIsAThreadThatStands) {
  FakeKernel kernel;
  put_pt(kernel);
  PerfEngine engine(kernel, Hardware::kPt, small());
  ASSERT_TRUE(engine.start(kSelf));
  auto snapshot = engine.snapshot(kSelf, {{0x1234}, false}, 10);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  EXPECT_EQ(snapshot->engine, "pt");
  EXPECT_TRUE(snapshot->complete);
  EXPECT_EQ(snapshot->records.back().from.value, 0x1234u);
}

TEST(PtSettings, AskForWhatThereIs) {
  FakeKernel kernel;
  put_pt(kernel);
  auto pmu = read_pmu(kernel.root(), "intel_pt");
  ASSERT_TRUE(pmu);
  PerfConfig config;
  auto attr = pt_attr(*pmu, config, 1 << 20);
  ASSERT_TRUE(attr);
  EXPECT_EQ(attr->config, 1u | 1u << 13 | 1u << 10 | 1u << 24);
  EXPECT_EQ(pt_attr(*pmu, config, 4096)->config, 1u | 1u << 13 | 1u << 10);
  config.return_compression = config.tsc = false;
  EXPECT_EQ(pt_attr(*pmu, config, 4096)->config, 1u | 1u << 13 | 1u << 11);
  config.cyc = true;
  EXPECT_EQ(pt_attr(*pmu, config, 4096).error().code, ErrorCode::kNoEngine);
}

TEST(PtSettings, AreUnderstoodByTheirNamesInSysfs) {
  PerfConfig config;
  ASSERT_TRUE(apply_pt_settings("cyc_thresh=4,mtc_period=5,psb_period=0,ptw,event,noretcomp,tsc=0",
                                config));
  EXPECT_TRUE(config.cyc && config.mtc && config.ptwrite && config.event_trace);
  EXPECT_FALSE(config.tsc || config.return_compression);
  EXPECT_EQ(config.cyc_threshold, 4);
  EXPECT_EQ(config.mtc_period, 5);
  EXPECT_EQ(config.psb_period, 0);
  EXPECT_TRUE(apply_pt_settings("", config));
  EXPECT_TRUE(apply_pt_settings("mtc_period", config));
  for (const char* wrong : {"nonsense", "mtc_period=", "psb_period=16", "tsc=2", ",", "cyc=on",
                            "ptw=1x", "psb_period=-1"})
    EXPECT_EQ(apply_pt_settings(wrong, config).error().code, ErrorCode::kUsage) << wrong;
}

// The kernel would say EINVAL to all of them.
TEST(PtSettings, ThatTheProcessorDoesNotHaveAreNamedWithWhatSysfsSays) {
  FakeKernel kernel;
  put_pt(kernel);
  const std::string folder = "/sys/bus/event_source/devices/intel_pt/";
  for (auto [name, field] : {std::pair{"cyc", "config:1"},
                             {"cyc_thresh", "config:19-22"},
                             {"mtc", "config:9"},
                             {"mtc_period", "config:14-17"},
                             {"ptw", "config:12"},
                             {"fup_on_ptw", "config:5"},
                             {"event", "config:31"}})
    kernel.put_file(folder + "format/" + name, std::string(field) + "\n");
  auto error_of = [&](const char* settings) {
    auto pmu = read_pmu(kernel.root(), "intel_pt");
    EXPECT_TRUE(pmu);
    PerfConfig config;
    EXPECT_TRUE(apply_pt_settings(settings, config));
    auto attr = pt_attr(*pmu, config, 1 << 20);
    return attr ? std::string() : attr.error().what + ": " + attr.error().why;
  };
  // A kernel that does not tell is asked.
  for (const char* settings : {"cyc", "mtc", "ptw", "event", "cyc_thresh=3"})
    EXPECT_EQ(error_of(settings), "");
  for (const char* cap : {"psb_cyc", "mtc", "ptwrite", "event_trace"})
    kernel.put_file(folder + "caps/" + cap, "0\n");
  EXPECT_THAT(error_of("cyc"), HasSubstr("cannot set cyc of intel_pt: this processor cannot"));
  EXPECT_THAT(error_of("mtc"), HasSubstr("caps/mtc is 0"));
  EXPECT_THAT(error_of("ptw"), HasSubstr("caps/ptwrite is 0"));
  EXPECT_THAT(error_of("event"), HasSubstr("caps/event_trace is 0"));
  for (const char* cap : {"psb_cyc", "mtc", "ptwrite", "event_trace"})
    kernel.put_file(folder + "caps/" + cap, "1\n");
  kernel.put_file(folder + "caps/mtc_periods", "249\n");
  kernel.put_file(folder + "caps/cycle_thresholds", "3\n");
  EXPECT_EQ(error_of("cyc,mtc,ptw,event"), "");
  EXPECT_THAT(error_of("mtc_period=4"),
              HasSubstr("cannot set mtc_period of intel_pt to 4: caps/mtc_periods of this "
                        "processor has 0, 3, 6, 9"));
  EXPECT_THAT(error_of("cyc_thresh=2"), HasSubstr("has 0, 1"));
  EXPECT_THAT(error_of("psb_period=6"), HasSubstr("has 0, 1, 2, 3, 4, 5"));
}

TEST(Overlap, AgreesWithTryingEveryLength) {
  std::mt19937 random(6);
  for (int round = 0; round < 2000; ++round) {
    auto make = [&](std::size_t size) {
      std::vector<BranchRecord> records(size);
      for (BranchRecord& record : records) record.from = {random() % 2};
      return records;
    };
    auto older = make(random() % 12), newer = make(random() % 12);
    std::size_t expected = 0;
    for (std::size_t n = 1; n <= std::min(older.size(), newer.size()); ++n)
      if (std::equal(newer.begin(), newer.begin() + static_cast<std::ptrdiff_t>(n),
                     older.end() - static_cast<std::ptrdiff_t>(n)))
        expected = n;
    ASSERT_EQ(longest_overlap(older, newer), expected);
  }
}

}  // namespace
}  // namespace tailtrace::perf
