#include "plugin/provider/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "plugin/engines/perf/known_trouble.h"

namespace tailtrace {
namespace {

// perf_event_paranoid above this refuses everything to users, in the kernels of distributions.
constexpr int kUsersMayTrace = 2;

std::string text_of(int error_number) { return std::generic_category().message(error_number); }

Verdict works(std::string engine, std::string summary) {
  return {std::move(engine), true, std::move(summary), {}, {}};
}

Verdict refused(std::string engine, std::string summary, std::string why, std::string fix = {}) {
  return {std::move(engine), false, std::move(summary), std::move(why), std::move(fix)};
}

std::string container_grant(const Machine& machine, std::string_view capability) {
  return fmt::format("start the container with {} run --cap-add={} ...",
                     machine.container == "podman" ? "podman" : "docker", capability);
}

bool is_paranoid(const Machine& machine) {
  return machine.perf_event_paranoid.value_or(-1) > kUsersMayTrace &&
         !machine.may(Capability::kSysAdmin);
}

// Why the kernel answered perf_event_open or its mmap with an error.
Verdict perf_refused(const std::string& engine, const Machine& machine, int error_number) {
  const std::string call = fmt::format("perf_event_open says {}", text_of(error_number));
  const bool rights = error_number == EACCES || error_number == EPERM;
  if (rights && is_paranoid(machine))
    return refused(engine, "the kernel does not permit it",
                   fmt::format("kernel.perf_event_paranoid is {}", *machine.perf_event_paranoid),
                   fmt::format("sudo sysctl kernel.perf_event_paranoid={}", kUsersMayTrace));
  if (rights && machine.seccomp != 0 && !machine.container.empty())
    return refused(engine, "the container does not permit it",
                   fmt::format("{}, and a seccomp filter of {} is on", call, machine.container),
                   container_grant(machine, "PERFMON"));
  if (error_number == EBUSY)
    return refused(engine, "somebody else is using it", call,
                   "end the other tracer; the hardware serves one at a time");
  return refused(engine, "the kernel refuses it", call);
}

std::string missing_hardware(const Machine& machine, std::string_view feature) {
  if (!machine.hypervisor.empty())
    return fmt::format("this is a virtual machine ({}) that is not given {}", machine.hypervisor,
                       feature);
  if (machine.cpu.vendor != "GenuineIntel")
    return fmt::format("{} is Intel's, and this processor is {}", feature, machine.cpu.vendor);
  return fmt::format("this processor ({}) has none", machine.cpu.name);
}

std::string missing_hardware_fix(const Machine& machine) {
  return machine.hypervisor.empty() ? "an Intel machine that has it" : "record on the host itself";
}

Verdict judge_pt(const Machine& machine, const Trials& trials) {
  const std::string summary = "no Intel Processor Trace";
  if (machine.pmu("intel_pt") == nullptr && machine.cpu.has("intel_pt"))
    return refused("pt", summary, "the processor has it, but the kernel registered no intel_pt",
                   "a kernel with perf events for Intel PT (x86 PMU drivers)");
  if (machine.pmu("intel_pt") == nullptr)
    return refused("pt", summary, missing_hardware(machine, "Intel Processor Trace"),
                   missing_hardware_fix(machine));
  if (!trials.pt) return refused("pt", summary, "it was not tried");
  if (!trials.pt->ok()) return perf_refused("pt", machine, trials.pt->error_number);
  if (trials.pt_map && trials.pt_map->error_number == EPERM)
    return refused("pt", "its buffer cannot be mapped",
                   "mmap says Operation not permitted: the limit of locked memory",
                   "ulimit -l unlimited, or sudo sysctl kernel.perf_event_mlock_kb=8192");
  if (trials.pt_map && !trials.pt_map->ok())
    return refused("pt", "its buffer cannot be mapped",
                   "mmap says " + text_of(trials.pt_map->error_number));
  return works("pt", "Intel Processor Trace can be opened and mapped");
}

Verdict judge_bts(const Machine& machine, const Trials& trials) {
  const std::string summary = "no Intel Branch Trace Store";
  if (!machine.cpu.has("bts"))
    return refused("bts", summary, missing_hardware(machine, "Branch Trace Store"),
                   missing_hardware_fix(machine));
  if (!trials.bts) return refused("bts", summary, "it was not tried");
  if (trials.bts->error_number == EOPNOTSUPP || trials.bts->error_number == ENOENT)
    return refused("bts", summary,
                   "perf_event_open says " + text_of(trials.bts->error_number) +
                       ": the kernel has no driver for it here");
  if (!trials.bts->ok()) return perf_refused("bts", machine, trials.bts->error_number);
  return works("bts", "Intel Branch Trace Store can be opened");
}

Verdict judge_lbr(const Machine& machine, const Trials& trials) {
  if (!machine.lbr_depth)
    return refused(
        "lbr", "no branch stack",
        machine.hypervisor.empty()
            ? "the kernel shows no PMU with a branch stack"
            : fmt::format("this is a virtual machine ({}), and the kernel shows no PMU "
                          "with a branch stack",
                          machine.hypervisor),
        machine.hypervisor.empty() ? "record with another engine" : "record on the host itself");
  if (!trials.lbr) return refused("lbr", "no branch stack", "it was not tried");
  if (!trials.lbr->ok()) return perf_refused("lbr", machine, trials.lbr->error_number);
  return works("lbr", fmt::format("samples carry the last {} branches", *machine.lbr_depth));
}

Verdict judge_qemu(const Trials& trials) {
  const std::string install = "sudo apt-get install qemu-user";
  if (trials.qemu.path.empty())
    return refused("qemu", "no qemu-x86_64", "there is none in PATH", install);
  if (!trials.qemu_has_plugins)
    return refused("qemu", "this qemu-x86_64 cannot load our recorder",
                   fmt::format("{} was built without plugins", trials.qemu.path), install);
  if (!trials.qemu_records.empty())
    return refused("qemu", "our recorder does not run in this qemu-x86_64", trials.qemu_records,
                   install);
  return works("qemu",
               fmt::format("records programs that it starts (qemu-x86_64 {}; one was tried)",
                           trials.qemu.version));
}

Verdict ptrace_refused(const Machine& machine, int error_number) {
  const std::string summary = "processes cannot be stepped";
  const std::string call = "ptrace says " + text_of(error_number);
  if (machine.yama_ptrace_scope.value_or(0) >= 3)
    return refused("step", summary, call + ": kernel.yama.ptrace_scope is 3",
                   "set kernel.yama.ptrace_scope to 0 in /etc/sysctl.d and restart the machine");
  if (machine.seccomp != 0 && !machine.container.empty())
    return refused("step", summary,
                   fmt::format("{}, and a seccomp filter of {} is on", call, machine.container),
                   container_grant(machine, "SYS_PTRACE"));
  return refused("step", summary, call);
}

Verdict judge_step(const Machine& machine, const Trials& trials) {
  if (!trials.ptrace_step.ok()) return ptrace_refused(machine, trials.ptrace_step.error_number);
  if (trials.gdbserver.path.empty())
    return refused("step", "no gdbserver", "there is none in PATH",
                   "sudo apt-get install gdbserver");
  return works("step", fmt::format("records any process, slowly (gdbserver {}; stepping was tried)",
                                   trials.gdbserver.version));
}

Verdict judge_attach(const Machine& machine, const Trials& trials) {
  if (!trials.ptrace_step.ok())
    return refused("attach", "running processes cannot be attached to",
                   "ptrace says " + text_of(trials.ptrace_step.error_number));
  int scope = machine.yama_ptrace_scope.value_or(0);
  if (scope == 0 || machine.may(Capability::kSysPtrace))
    return works("attach", "running processes can be attached to (engine step)");
  return refused("attach", "only own children can be attached to",
                 fmt::format("kernel.yama.ptrace_scope is {}", scope),
                 scope >= 3 ? "" : "sudo sysctl kernel.yama.ptrace_scope=0");
}

Verdict found(const Tool& tool) {
  return works(tool.name, fmt::format("{} ({})", tool.version, tool.path));
}

Verdict judge_gdb(const Tool& gdb) {
  if (!gdb.path.empty()) return found(gdb);
  return refused("gdb", "not found", "there is none in PATH", "sudo apt-get install gdb");
}

Verdict judge_lldb(const Trials& trials) {
  if (!trials.lldb.path.empty()) return found(trials.lldb);
  return refused("lldb", "none that reads traces", trials.no_lldb.why, trials.no_lldb.fix);
}

Verdict judge_perf(const Machine& machine, const Trials& trials) {
  if (!machine.perf_event_paranoid)
    return refused("perf events", "this kernel has none", "there is no kernel.perf_event_paranoid");
  if (!trials.perf_software.ok())
    return perf_refused("perf events", machine, trials.perf_software.error_number);
  return works("perf events", fmt::format("allowed (kernel.perf_event_paranoid is {})",
                                          *machine.perf_event_paranoid));
}

}  // namespace

std::vector<Verdict> judge(const Machine& machine, const Trials& trials) {
  return {judge_pt(machine, trials), judge_bts(machine, trials), judge_lbr(machine, trials),
          judge_qemu(trials), judge_step(machine, trials)};
}

const Verdict* auto_choice(const std::vector<Verdict>& verdicts) {
  // Last branch records are a short tail, for those who ask for them by name.
  auto found = std::find_if(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.works && verdict.engine != "lbr";
  });
  return found == verdicts.end() ? nullptr : &*found;
}

std::vector<Verdict> judge_surroundings(const Machine& machine, const Trials& trials) {
  std::vector<Verdict> verdicts = {judge_gdb(trials.gdb), judge_lldb(trials),
                                   judge_attach(machine, trials), judge_perf(machine, trials)};
  for (perf::Trouble& trouble : perf::known_trouble(machine))
    verdicts.push_back(refused(trouble.subject, trouble.what, trouble.why, trouble.fix));
  return verdicts;
}

}  // namespace tailtrace
