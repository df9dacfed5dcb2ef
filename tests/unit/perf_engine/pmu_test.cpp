#include "plugin/engines/perf/pmu.h"

#include <gtest/gtest.h>

#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

TEST(Pmu, FieldsAreReadAsSysfsWritesThem) {
  auto range = parse_field("config:14-17");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->word, 0);
  EXPECT_EQ(range->first_bit, 14u);
  EXPECT_EQ(range->last_bit, 17u);
  auto bit = parse_field("config1:3");
  ASSERT_TRUE(bit);
  EXPECT_EQ(bit->word, 1);
  EXPECT_EQ(bit->last_bit, 3u);
  for (const char* bad : {"", "config", "config:", "config3:1", "config:7-3", "config:64",
                          "config:1-", "config:1,3", "umask:1", "config:1 "})
    EXPECT_FALSE(parse_field(bad)) << bad;
}

TEST(Pmu, SettingsGoWhereTheFormatSays) {
  FakeKernel kernel;
  kernel.put_pmu("intel_pt", 8);
  const std::string folder = "/sys/bus/event_source/devices/intel_pt/";
  kernel.put_file(folder + "format/psb_period", "config:24-27\n");
  kernel.put_file(folder + "format/wide", "config2:0-63\n");
  kernel.put_file(folder + "caps/psb_periods", "3f\n");
  auto pmu = read_pmu(kernel.root(), "intel_pt");
  ASSERT_TRUE(pmu) << pmu.error().to_string();
  EXPECT_EQ(pmu->type, 8u);
  EXPECT_EQ(pmu->cap("psb_periods"), 0x3fu);
  EXPECT_EQ(pmu->cap("mtc"), std::nullopt);
  perf_event_attr attr{};
  attr.config = 0xf << 24;
  ASSERT_TRUE(pmu->set(attr, "psb_period", 5));
  EXPECT_EQ(attr.config, 5u << 24);
  ASSERT_TRUE(pmu->set(attr, "wide", ~0ull));
  EXPECT_EQ(attr.config2, ~0ull);
  EXPECT_EQ(pmu->set(attr, "psb_period", 16).error().code, ErrorCode::kUsage);
  EXPECT_EQ(pmu->set(attr, "mtc", 1).error().code, ErrorCode::kNoEngine);
}

TEST(Pmu, OneThatIsNotThereIsNoEngine) {
  FakeKernel kernel;
  auto pmu = read_pmu(kernel.root(), "intel_pt");
  ASSERT_FALSE(pmu);
  EXPECT_EQ(pmu.error().code, ErrorCode::kNoEngine);
}

}  // namespace
}  // namespace tailtrace::perf
