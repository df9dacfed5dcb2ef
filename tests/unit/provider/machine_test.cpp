#include "plugin/engines/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using testing::ElementsAre;

// A machine made of files.
class MachineFiles {
 public:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::path file = folder_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Machine read() const { return read_machine(folder_.path()); }

 private:
  TempFolder folder_;
};

TEST(Machine, ProcessorIsReadFromItsFirstBlockAndCounted) {
  MachineFiles files;
  files.write("/proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
              "model name\t: Intel(R) Core(TM) i7: a name with a colon\nstepping\t: 10\n"
              "flags\t\t: fpu intel_pt dtes64 bts\n\n"
              "processor\t: 1\nvendor_id\t: GenuineIntel\nmodel\t\t: 999\nflags\t: other\n");
  Machine machine = files.read();
  EXPECT_EQ(machine.cpu.count, 2);
  EXPECT_EQ(machine.cpu.vendor, "GenuineIntel");
  EXPECT_EQ(machine.cpu.name, "Intel(R) Core(TM) i7: a name with a colon");
  EXPECT_EQ(machine.cpu.family, 6);
  EXPECT_EQ(machine.cpu.model, 158);
  EXPECT_EQ(machine.cpu.stepping, 10);
  EXPECT_TRUE(machine.cpu.has("intel_pt"));
  EXPECT_TRUE(machine.cpu.has("bts"));
  EXPECT_FALSE(machine.cpu.has("other"));
  EXPECT_FALSE(machine.cpu.has("intel"));
  EXPECT_EQ(machine.hypervisor, "");
}

TEST(Machine, PmusComeWithTheirTypes) {
  MachineFiles files;
  const std::string devices = "/sys/bus/event_source/devices";
  files.write(devices + "/software/type", "1\n");
  files.write(devices + "/intel_pt/type", "8\n");
  files.write(devices + "/broken/type", "x\n");
  files.write(devices + "/cpu_core/type", "4\n");
  files.write(devices + "/cpu_core/caps/branches", "32\n");
  Machine machine = files.read();
  std::vector<std::string> names;
  for (const Pmu& pmu : machine.pmus) names.push_back(pmu.name);
  EXPECT_THAT(names, ElementsAre("cpu_core", "intel_pt", "software"));
  ASSERT_NE(machine.pmu("intel_pt"), nullptr);
  EXPECT_EQ(machine.pmu("intel_pt")->type, 8);
  EXPECT_EQ(machine.pmu("intel_bts"), nullptr);
  EXPECT_EQ(machine.lbr_depth, 32);
}

TEST(Machine, LimitsAreNumbersAndMayBeNegative) {
  MachineFiles files;
  files.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  files.write("/proc/sys/kernel/perf_event_paranoid", "-1\n");
  files.write("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
  files.write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  Machine machine = files.read();
  EXPECT_EQ(machine.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(machine.perf_event_paranoid, -1);
  EXPECT_EQ(machine.perf_event_mlock_kb, 516);
  EXPECT_EQ(machine.yama_ptrace_scope, 1);
}

TEST(Machine, OwnRightsAreRead) {
  MachineFiles files;
  files.write("/proc/self/status",
              "Name:\ttailtrace\nCapEff:\t0000004000080000\nNoNewPrivs:\t0\nSeccomp:\t2\n");
  Machine machine = files.read();
  EXPECT_EQ(machine.seccomp, 2);
  EXPECT_TRUE(machine.may(Capability::kSysPtrace));
  EXPECT_TRUE(machine.may(Capability::kPerfmon));
  EXPECT_FALSE(machine.may(Capability::kSysAdmin));
  EXPECT_FALSE(machine.may(Capability::kIpcLock));
}

TEST(Machine, VirtualMachineIsToldByTheProcessorAndNamedByItsBoard) {
  MachineFiles files;
  files.write("/proc/cpuinfo", "processor : 0\nflags : fpu hypervisor\n");
  EXPECT_EQ(files.read().hypervisor, "unknown");
  files.write("/sys/class/dmi/id/product_name", "VirtualBox\n");
  EXPECT_EQ(files.read().hypervisor, "VirtualBox");
  files.write("/sys/hypervisor/type", "xen\n");
  EXPECT_EQ(files.read().hypervisor, "xen");
}

TEST(Machine, EachKindOfContainerLeavesItsTrace) {
  for (auto [path, text, kind] : std::vector<std::array<std::string, 3>>{
           {"/.dockerenv", "", "docker"},
           {"/run/.containerenv", "engine=podman", "podman"},
           {"/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
           {"/proc/1/cgroup", "0::/kubepods/burstable/pod1\n", "kubepods"},
           {"/proc/1/cgroup", "0::/lxc.payload.x\n", "lxc"},
           {"/proc/1/cgroup", "0::/init.scope\n", ""},
       }) {
    MachineFiles files;
    files.write(path, text);
    EXPECT_EQ(files.read().container, kind) << path;
  }
}

TEST(Machine, NothingReadableIsNothingKnown) {
  Machine machine = read_machine("/nonexistent");
  EXPECT_EQ(machine.cpu.count, 0);
  EXPECT_TRUE(machine.pmus.empty());
  EXPECT_EQ(machine.perf_event_paranoid, std::nullopt);
  EXPECT_EQ(machine.container, "");
  EXPECT_EQ(machine.seccomp, 0);
}

}  // namespace
}  // namespace tailtrace
