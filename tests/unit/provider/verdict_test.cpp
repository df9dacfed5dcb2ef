#include "plugin/provider/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace tailtrace {
namespace {

using testing::HasSubstr;

// A bare-metal Intel machine where everything works, to be spoilt by each test.
struct Patient {
  Machine machine;
  Trials trials;

  Patient() {
    machine.cpu = {"GenuineIntel", "Core", 6, 158, 10, {"bts", "intel_pt"}, 8};
    machine.pmus = {{"intel_pt", 8}};
    machine.lbr_depth = 32;
    machine.perf_event_paranoid = 2;
    machine.yama_ptrace_scope = 0;
    trials.pt = trials.bts = trials.lbr = trials.pt_map = Trial{};
    trials.gdb = {"gdb", "/usr/bin/gdb", "13.1"};
    trials.gdbserver = {"gdbserver", "/usr/bin/gdbserver", "13.1"};
    trials.lldb = {"lldb", "", ""};
    trials.no_lldb = {ErrorCode::kNoEngine, "cannot start LLDB", "there is no lldb in PATH",
                      "sudo apt-get install lldb-22", ""};
    trials.qemu = {"qemu-x86_64", "/usr/bin/qemu-x86_64", "7.2.22"};
    trials.qemu_has_plugins = true;
  }

  void make_virtual_amd() {
    machine.cpu = {"AuthenticAMD", "EPYC", 25, 17, 1, {"hypervisor"}, 2};
    machine.hypervisor = "KVM";
    machine.pmus.clear();
    machine.lbr_depth.reset();
    trials.pt.reset();
    trials.pt_map.reset();
    trials.bts.reset();
    trials.lbr.reset();
  }

  Verdict verdict(const std::string& engine) const {
    auto all = judge(machine, trials);
    auto others = judge_surroundings(machine, trials);
    all.insert(all.end(), others.begin(), others.end());
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Verdict& verdict) { return verdict.engine == engine; });
    return found == all.end() ? Verdict{"missing", false, "", "", ""} : *found;
  }
  std::string automatic() const {
    auto all = judge(machine, trials);
    const Verdict* chosen = auto_choice(all);
    return chosen == nullptr ? "none" : chosen->engine;
  }
};

TEST(Verdict, VirtualMachineOfAnotherVendorRecordsInSoftware) {
  Patient patient;
  patient.make_virtual_amd();
  EXPECT_FALSE(patient.verdict("pt").works);
  EXPECT_EQ(patient.verdict("pt").why,
            "this is a virtual machine (KVM) that is not given Intel Processor Trace");
  EXPECT_EQ(patient.verdict("pt").fix, "record on the host itself");
  EXPECT_FALSE(patient.verdict("bts").works);
  EXPECT_FALSE(patient.verdict("lbr").works);
  EXPECT_TRUE(patient.verdict("qemu").works);
  EXPECT_TRUE(patient.verdict("step").works);
  EXPECT_EQ(patient.automatic(), "qemu");
}

TEST(Verdict, OtherVendorsBareMetalIsToldSo) {
  Patient patient;
  patient.make_virtual_amd();
  patient.machine.hypervisor.clear();
  EXPECT_EQ(patient.verdict("pt").why,
            "Intel Processor Trace is Intel's, and this processor is AuthenticAMD");
}

TEST(Verdict, OldIntelHasNoProcessorTrace) {
  Patient patient;
  patient.machine.cpu.flags = {"bts"};
  patient.machine.pmus.clear();
  EXPECT_EQ(patient.verdict("pt").why, "this processor (Core) has none");
}

TEST(Verdict, KernelWithoutDriverIsTold) {
  Patient patient;
  patient.machine.pmus.clear();
  EXPECT_THAT(patient.verdict("pt").why, HasSubstr("kernel registered no intel_pt"));
}

TEST(Verdict, ParanoidKernelHasItsSysctl) {
  Patient patient;
  patient.machine.perf_event_paranoid = 4;
  patient.trials.pt = patient.trials.perf_software = Trial{EACCES};
  for (const char* subject : {"pt", "perf events"}) {
    Verdict verdict = patient.verdict(subject);
    EXPECT_FALSE(verdict.works);
    EXPECT_EQ(verdict.why, "kernel.perf_event_paranoid is 4") << subject;
    EXPECT_EQ(verdict.fix, "sudo sysctl kernel.perf_event_paranoid=2") << subject;
  }
}

TEST(Verdict, PermissionIsNotBlamedOnParanoiaThatDoesNotBind) {
  Patient patient;
  patient.machine.perf_event_paranoid = 4;
  patient.machine.capabilities = 1ull << 21;  // CAP_SYS_ADMIN
  patient.trials.pt = Trial{EPERM};
  patient.machine.container = "docker";
  patient.machine.seccomp = 2;
  Verdict verdict = patient.verdict("pt");
  EXPECT_THAT(verdict.why, HasSubstr("Operation not permitted, and a seccomp filter of docker"));
  EXPECT_EQ(verdict.fix, "start the container with docker run --cap-add=PERFMON ...");
}

TEST(Verdict, BusyHardwareIsSomebodyElses) {
  Patient patient;
  patient.trials.pt = Trial{EBUSY};
  EXPECT_EQ(patient.verdict("pt").summary, "somebody else is using it");
}

TEST(Verdict, LockedMemoryIsTheLimitOfBuffers) {
  Patient patient;
  patient.trials.pt_map = Trial{EPERM};
  EXPECT_THAT(patient.verdict("pt").why, HasSubstr("locked memory"));
  EXPECT_THAT(patient.verdict("pt").fix, HasSubstr("ulimit -l"));
}

TEST(Verdict, ErrorOfNoKnownCauseIsGivenAsItIs) {
  Patient patient;
  patient.trials.pt = Trial{EINVAL};
  EXPECT_EQ(patient.verdict("pt").why, "perf_event_open says Invalid argument");
}

TEST(Verdict, HardwareIsTakenBeforeSoftware) {
  Patient patient;
  EXPECT_EQ(patient.automatic(), "pt");
  patient.trials.pt = Trial{EBUSY};
  EXPECT_EQ(patient.automatic(), "bts");
  patient.trials.bts = Trial{EBUSY};
  EXPECT_TRUE(patient.verdict("lbr").works);
  EXPECT_EQ(patient.automatic(), "qemu") << "last branch records are a short tail";
}

TEST(Verdict, WithoutQemuTheProgramIsStepped) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = Trial{EBUSY};
  patient.trials.qemu = {"qemu-x86_64", "", ""};
  EXPECT_EQ(patient.verdict("qemu").fix, "sudo apt-get install qemu-user");
  EXPECT_EQ(patient.automatic(), "step");
}

TEST(Verdict, QemuThatCannotLoadTheRecorderDoesNotWork) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = Trial{EBUSY};
  patient.trials.qemu_has_plugins = false;
  EXPECT_THAT(patient.verdict("qemu").why, HasSubstr("built without plugins"));
  patient.trials.qemu_has_plugins = true;
  patient.trials.qemu_records = "it speaks another plugin version";
  EXPECT_EQ(patient.verdict("qemu").why, "it speaks another plugin version");
  EXPECT_EQ(patient.automatic(), "step");
}

TEST(Verdict, NothingWorksWithoutPtraceAndQemu) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = Trial{EBUSY};
  patient.trials.qemu = {"qemu-x86_64", "", ""};
  patient.trials.ptrace_step = Trial{EPERM};
  patient.machine.yama_ptrace_scope = 3;
  EXPECT_THAT(patient.verdict("step").why, HasSubstr("kernel.yama.ptrace_scope is 3"));
  EXPECT_FALSE(patient.verdict("attach").works);
  EXPECT_EQ(patient.automatic(), "none");
}

TEST(Verdict, PtraceInAContainerNeedsItsCapability) {
  Patient patient;
  patient.trials.ptrace_step = Trial{EPERM};
  patient.machine.container = "podman";
  patient.machine.seccomp = 2;
  EXPECT_EQ(patient.verdict("step").fix,
            "start the container with podman run --cap-add=SYS_PTRACE ...");
}

TEST(Verdict, StepNeedsGdbserver) {
  Patient patient;
  patient.trials.gdbserver = {"gdbserver", "", ""};
  EXPECT_EQ(patient.verdict("step").fix, "sudo apt-get install gdbserver");
}

TEST(Verdict, AttachIsLimitedByYamaUnlessCapable) {
  Patient patient;
  patient.machine.yama_ptrace_scope = 1;
  EXPECT_FALSE(patient.verdict("attach").works);
  EXPECT_EQ(patient.verdict("attach").fix, "sudo sysctl kernel.yama.ptrace_scope=0");
  patient.machine.capabilities = 1ull << 19;  // CAP_SYS_PTRACE
  EXPECT_TRUE(patient.verdict("attach").works);
}

TEST(Verdict, MissingDebuggerNamesItsPackage) {
  Patient patient;
  EXPECT_TRUE(patient.verdict("gdb").works);
  EXPECT_EQ(patient.verdict("lldb").fix, "sudo apt-get install lldb-22");
}

}  // namespace
}  // namespace tailtrace
