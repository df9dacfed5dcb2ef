#include "plugin/provider/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace tailtrace {
namespace {

using testing::HasSubstr;

// As an engine says it: what, why, fix.
PerfTrial refused(ErrorCode code, std::string why, std::string fix = "") {
  return {Error{code, "cannot watch this thread", std::move(why), std::move(fix), ""}};
}

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
    trials.pt = trials.bts = trials.lbr = refused(ErrorCode::kNoEngine, "an AMD in a KVM");
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
  EXPECT_EQ(patient.verdict("pt").summary, "no Intel Processor Trace");
  EXPECT_EQ(patient.verdict("pt").why, "an AMD in a KVM");
  EXPECT_FALSE(patient.verdict("bts").works);
  EXPECT_FALSE(patient.verdict("lbr").works);
  EXPECT_TRUE(patient.verdict("qemu").works);
  EXPECT_TRUE(patient.verdict("step").works);
  EXPECT_EQ(patient.automatic(), "qemu");
}

TEST(Verdict, OfPerfEventsIsWhatTheEnginesSay) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = patient.trials.lbr = patient.trials.perf_software =
      refused(ErrorCode::kPermission, "kernel.perf_event_paranoid is 4", "sudo sysctl ...=2");
  for (const char* subject : {"pt", "bts", "lbr", "perf events"}) {
    Verdict verdict = patient.verdict(subject);
    EXPECT_FALSE(verdict.works) << subject;
    EXPECT_EQ(verdict.summary, "it is not permitted") << subject;
    EXPECT_EQ(verdict.why, "kernel.perf_event_paranoid is 4") << subject;
    EXPECT_EQ(verdict.fix, "sudo sysctl ...=2") << subject;
  }
  patient.trials.pt = refused(ErrorCode::kSystem, "1 (init) has it");
  EXPECT_EQ(patient.verdict("pt").summary, "the kernel refuses it");
}

TEST(Verdict, KnownTroubleIsShownBesidesTheEngines) {
  Patient patient;
  patient.machine.kernel = "5.10.0";
  EXPECT_THAT(patient.verdict("CPU 0").why, HasSubstr("mended in 6.16"));
  EXPECT_THAT(patient.verdict("one range").why, HasSubstr("mended in 6.1"));
}

TEST(Verdict, HardwareIsTakenBeforeSoftware) {
  Patient patient;
  EXPECT_EQ(patient.automatic(), "pt");
  patient.trials.pt = refused(ErrorCode::kSystem, "busy");
  EXPECT_EQ(patient.automatic(), "bts");
  patient.trials.bts = refused(ErrorCode::kSystem, "busy");
  EXPECT_TRUE(patient.verdict("lbr").works);
  EXPECT_EQ(patient.automatic(), "qemu") << "last branch records are a short tail";
}

TEST(Verdict, WithoutQemuTheProgramIsStepped) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = refused(ErrorCode::kSystem, "busy");
  patient.trials.qemu = {"qemu-x86_64", "", ""};
  EXPECT_EQ(patient.verdict("qemu").fix, "sudo apt-get install qemu-user");
  EXPECT_EQ(patient.automatic(), "step");
}

TEST(Verdict, QemuThatCannotLoadTheRecorderDoesNotWork) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = refused(ErrorCode::kSystem, "busy");
  patient.trials.qemu_has_plugins = false;
  EXPECT_THAT(patient.verdict("qemu").why, HasSubstr("built without plugins"));
  EXPECT_THAT(patient.verdict("qemu").fix, HasSubstr("Debian 12 (7.2)"));
  patient.trials.qemu_has_plugins = true;
  patient.trials.qemu_records = "it speaks another plugin version";
  EXPECT_EQ(patient.verdict("qemu").why, "it speaks another plugin version");
  EXPECT_EQ(patient.automatic(), "step");
}

TEST(Verdict, NothingWorksWithoutPtraceAndQemu) {
  Patient patient;
  patient.trials.pt = patient.trials.bts = refused(ErrorCode::kSystem, "busy");
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
