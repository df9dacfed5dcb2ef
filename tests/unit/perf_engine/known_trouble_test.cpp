#include "plugin/engines/perf/known_trouble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/engines/perf/perf_engine.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

std::vector<std::string> subjects(const Machine& machine) {
  std::vector<std::string> all;
  for (const Trouble& trouble : known_trouble(machine)) all.push_back(trouble.subject);
  return all;
}

Machine machine_of(FakeKernel& kernel, const std::string& release) {
  kernel.put_file("/proc/sys/kernel/osrelease", release + "\n");
  return read_machine(kernel.root());
}

TEST(KnownTrouble, IsNoneWhereNothingCanBeRecorded) {
  FakeKernel kernel;
  EXPECT_EQ(subjects(machine_of(kernel, "5.4.0")), std::vector<std::string>{});
}

TEST(KnownTrouble, OfKernelsIsToldByVersion) {
  FakeKernel kernel;
  kernel.put_pmu("intel_pt", 8);
  EXPECT_EQ(subjects(machine_of(kernel, "6.16.0-1-amd64")), std::vector<std::string>{});
  EXPECT_EQ(subjects(machine_of(kernel, "6.12.117+deb12-amd64")),
            std::vector<std::string>{"CPU 0"});
  EXPECT_EQ(subjects(machine_of(kernel, "5.10.0-9-amd64")),
            (std::vector<std::string>{"CPU 0", "one range"}));
  EXPECT_EQ(subjects(machine_of(kernel, "rolling")), std::vector<std::string>{});
}

TEST(KnownTrouble, HybridProcessorsNameTheirPerformanceCores) {
  FakeKernel kernel;
  kernel.put_pmu("cpu_core", 4);
  kernel.put_pmu("cpu_atom", 10);
  kernel.put_file("/sys/bus/event_source/devices/cpu_core/cpus", "0-7\n");
  Machine machine = machine_of(kernel, "6.16.0");
  auto all = known_trouble(machine);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].fix, testing::HasSubstr("taskset -c 0-7"));
}

TEST(KnownTrouble, IsolatedPageTablesExplainWhyTheAreaIsMissing) {
  FakeKernel kernel;
  kernel.put_pmu("cpu", 4);
  kernel.put_file("/proc/cpuinfo", "processor : 0\nvendor_id : GenuineIntel\nflags : bts fpu\n");
  kernel.put_file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
  EXPECT_EQ(subjects(machine_of(kernel, "6.16.0")), std::vector<std::string>{"page tables"});
  kernel.put_file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
  EXPECT_EQ(subjects(machine_of(kernel, "6.16.0")), std::vector<std::string>{});
}

}  // namespace
}  // namespace tailtrace::perf
