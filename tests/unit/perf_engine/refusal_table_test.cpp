// Every answer of a kernel that refuses, in one table: what was tried on which machine, and what is
// said of it. `tailtrace doctor` shows the same words, which the last column of work checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "plugin/engines/perf/event.h"
#include "plugin/provider/verdict.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

constexpr const char* kIntel =
    "processor : 0\nvendor_id : GenuineIntel\nmodel name : Core\n"
    "flags : bts intel_pt\n";
constexpr const char* kOldIntel =
    "processor : 0\nvendor_id : GenuineIntel\nmodel name : Core\n"
    "flags : fpu\n";
constexpr const char* kAmd =
    "processor : 0\nvendor_id : AuthenticAMD\nmodel name : EPYC\n"
    "flags : fpu\n";

struct Where {
  const char* path = nullptr;
  const char* text = "";
};

struct Row {
  const char* name;
  int error_number;
  Purpose purpose;
  Step step;
  const char* processor;
  std::vector<Where> files;
  ErrorCode code;
  const char* why;
  const char* fix;
  Target target = {42, -1};
  bool kernel_code = false;
};

const Where kParanoid4{"/proc/sys/kernel/perf_event_paranoid", "4\n"};
const Where kParanoid2{"/proc/sys/kernel/perf_event_paranoid", "2\n"};
const Where kSeccomp{"/proc/self/status", "Seccomp:\t2\nCapEff:\t0000000000000000\n"};
const Where kAdminBehindSeccomp{"/proc/self/status", "Seccomp:\t2\nCapEff:\t0000000000200000\n"};
const Where kVirtual{"/sys/hypervisor/type", "KVM\n"};
const Where kPtType{"/sys/bus/event_source/devices/intel_pt/type", "8\n"};
const Where kIsolated{"/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"};

using enum ErrorCode;
using enum Purpose;
using enum Step;

const Row kRows[] = {
    {"in_a_virtual_machine",
     ENOENT,
     kPt,
     kOpen,
     kIntel,
     {kVirtual},
     kNoEngine,
     "virtual machine (KVM) that is not given Intel PT",
     "on the host itself"},
    {"in_a_virtual_machine_that_hides_it",
     ENOENT,
     kPt,
     kOpen,
     kOldIntel,
     {kVirtual},
     kNoEngine,
     "virtual machine (KVM) that is not given Intel PT",
     "on the host itself"},
    {"counters_in_a_virtual_machine",
     ENOENT,
     kLbr,
     kOpen,
     kAmd,
     {kVirtual},
     kNoEngine,
     "virtual machine (KVM) that is not given last branch records",
     "on the host itself"},
    {"of_another_vendor",
     ENOENT,
     kPt,
     kOpen,
     kAmd,
     {},
     kNoEngine,
     "Intel PT is Intel's, and this processor is AuthenticAMD",
     "an Intel machine"},
    {"samples_of_another_vendor",
     EOPNOTSUPP,
     kBtsSamples,
     kOpen,
     kAmd,
     {},
     kNoEngine,
     "Intel BTS is Intel's",
     "an Intel machine"},
    {"too_old_a_processor",
     ENOENT,
     kPt,
     kOpen,
     kOldIntel,
     {},
     kNoEngine,
     "this processor (Core) has no Intel PT",
     "a machine that has it"},
    {"no_driver",
     ENODEV,
     kPt,
     kOpen,
     kIntel,
     {},
     kNoEngine,
     "registered nothing for it",
     "x86 PMU drivers"},
    {"isolated_page_tables",
     ENOENT,
     kBtsArea,
     kOpen,
     kIntel,
     {kIsolated},
     kNoEngine,
     "isolates its page tables from user code (Meltdown)",
     ""},
    {"no_branch_stack",
     EOPNOTSUPP,
     kLbr,
     kOpen,
     kOldIntel,
     {},
     kNoEngine,
     "has no last branch records",
     "a machine that has it"},
    {"more_filters_than_a_pmu_has",
     EOPNOTSUPP,
     kPt,
     kFilter,
     kIntel,
     {kPtType, {"/sys/bus/event_source/devices/intel_pt/nr_addr_filters", "2\n"}},
     kUsage,
     "Intel PT has 2 filters by address, and more",
     "name 2 at most"},
    {"no_filters",
     EOPNOTSUPP,
     kPt,
     kFilter,
     kIntel,
     {kPtType},
     kNoEngine,
     "no filters by address",
     "record without filters"},
    {"not_what_a_pmu_can",
     EOPNOTSUPP,
     kPt,
     kOpen,
     kIntel,
     {},
     kNoEngine,
     "this PMU cannot do what was asked",
     "a machine that has it"},
    {"paranoid",
     EACCES,
     kPt,
     kOpen,
     kIntel,
     {kParanoid4},
     kPermission,
     "kernel.perf_event_paranoid is 4",
     "sysctl kernel.perf_event_paranoid=2"},
    {"kernel_addresses",
     EACCES,
     kBtsArea,
     kOpen,
     kIntel,
     {kParanoid2},
     kPermission,
     "intel_bts shows kernel addresses",
     "perf_event_paranoid=1, or CAP_PERFMON"},
    {"kernel_code",
     EACCES,
     kPt,
     kOpen,
     kIntel,
     {kParanoid2},
     kPermission,
     "kernel code was asked for",
     "perf_event_paranoid=1, or CAP_PERFMON",
     {42, -1},
     true},
    {"a_whole_cpu",
     EACCES,
     kPt,
     kOpen,
     kIntel,
     {kParanoid2},
     kPermission,
     "a whole CPU was asked for",
     "perf_event_paranoid=0, or CAP_PERFMON",
     {-1, 0}},
    {"somebody_elses_thread",
     EACCES,
     kPt,
     kOpen,
     kIntel,
     {kParanoid2},
     kPermission,
     "may not look at the thread",
     "CAP_SYS_PTRACE"},
    {"seccomp",
     EPERM,
     kPt,
     kOpen,
     kIntel,
     {kSeccomp},
     kPermission,
     "seccomp filter is on",
     "--cap-add=PERFMON"},
    {"seccomp_of_docker",
     EPERM,
     kPt,
     kOpen,
     kIntel,
     {kSeccomp, {"/.dockerenv", ""}},
     kPermission,
     "seccomp filter of docker",
     "--cap-add=PERFMON"},
    {"seccomp_although_mighty",
     EPERM,
     kPt,
     kOpen,
     kIntel,
     {kAdminBehindSeccomp},
     kPermission,
     "seccomp filter is on",
     "--cap-add=PERFMON"},
    {"seccomp_that_hides_the_call",
     ENOSYS,
     kPt,
     kOpen,
     kIntel,
     {kSeccomp},
     kNoEngine,
     "seccomp filter hides perf_event_open",
     "CONFIG_PERF_EVENTS"},
    {"no_perf_events",
     ENOSYS,
     kPt,
     kOpen,
     kIntel,
     {},
     kNoEngine,
     "built without perf events",
     "CONFIG_PERF_EVENTS"},
    {"locked_memory",
     EPERM,
     kPt,
     kMapAux,
     kIntel,
     {},
     kPermission,
     "the user's pool for perf is",
     "ulimit -l"},
    {"locked_memory_of_a_ring",
     EPERM,
     kBtsSamples,
     kMapRing,
     kIntel,
     {},
     kPermission,
     "KiB were asked for",
     "kernel.perf_event_mlock_kb="},
    {"busy",
     EBUSY,
     kPt,
     kOpen,
     kIntel,
     {},
     kSystem,
     "one tracer at a time",
     "end the other tracer"},
    {"no_debug_register",
     ENOSPC,
     kBreakpoint,
     kOpen,
     kIntel,
     {},
     kSystem,
     "all four debug registers of the thread are taken",
     "delete a hardware breakpoint"},
    {"no_room_elsewhere", ENOSPC, kPt, kOpen, kIntel, {}, kSystem, "No space left", ""},
    {"old_kernel",
     E2BIG,
     kPt,
     kOpen,
     kIntel,
     {},
     kUsage,
     "does not take the event",
     "a newer kernel"},
    {"strange_buffer",
     EINVAL,
     kPt,
     kMapAux,
     kIntel,
     {},
     kUsage,
     "not a power of two",
     "such as 64KiB"},
    {"no_memory",
     ENOMEM,
     kPt,
     kMapAux,
     kIntel,
     {},
     kSystem,
     "not enough memory",
     "a smaller buffer"},
    {"memory_in_pieces",
     ENOMEM,
     kBtsArea,
     kMapAux,
     kIntel,
     {},
     kSystem,
     "one piece of physical memory",
     "a smaller buffer"},
    {"no_descriptors",
     EMFILE,
     kPt,
     kOpen,
     kIntel,
     {},
     kSystem,
     "takes file descriptors",
     "ulimit -n"},
    {"thread_is_gone", ESRCH, kPt, kOpen, kIntel, {}, kGone, "no longer there", ""},
    {"none_of_these", EIO, kPt, kControl, kIntel, {}, kSystem, "Input/output error", ""},
};

class RefusalOf : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    kernel_.put_file("/proc/cpuinfo", GetParam().processor);
    for (const Where& file : GetParam().files) kernel_.put_file(file.path, file.text);
  }

  Error explained() {
    const Row& row = GetParam();
    perf_event_attr attr = plain_attr(8, 0);
    if (row.kernel_code) attr.exclude_kernel = 0;
    kernel_.on_open = [&](const perf_event_attr&, Target) { return -row.error_number; };
    return explain(kernel_, {row.purpose, row.step, row.error_number, row.target, 1 << 20, &attr});
  }

  FakeKernel kernel_;
};

TEST_P(RefusalOf, HasItsCauseAndItsFix) {
  const Row& row = GetParam();
  const Error error = explained();
  EXPECT_EQ(error.code, row.code) << error.to_string();
  EXPECT_THAT(error.what, HasSubstr("cannot ")) << error.to_string();
  EXPECT_THAT(error.why, HasSubstr(row.why));
  EXPECT_THAT(error.fix, HasSubstr(row.fix));
}

TEST_P(RefusalOf, IsWhatDoctorSays) {
  const Error error = explained();
  Trials trials;
  trials.pt = trials.bts = trials.lbr = {error};
  const std::vector<Verdict> verdicts = judge(read_machine(kernel_.root()), trials);
  for (const Verdict& verdict : verdicts) {
    if (verdict.engine == "qemu" || verdict.engine == "step") continue;
    EXPECT_FALSE(verdict.works);
    EXPECT_EQ(verdict.why, error.why);
    EXPECT_EQ(verdict.fix, error.fix);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RefusalOf, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tailtrace::perf
