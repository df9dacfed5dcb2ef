#include "plugin/provider/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "plugin/engines/perf/known_trouble.h"
#include "plugin/engines/qemu/known_qemu.h"

namespace tailtrace {
namespace {

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

// What is in the way, in one line; the refusal has the cause and the fix.
std::string in_the_way(const Error& refusal, std::string missing) {
  if (refusal.code == ErrorCode::kNoEngine) return missing;
  if (refusal.code == ErrorCode::kPermission) return "it is not permitted";
  return "the kernel refuses it";
}

Verdict judge_perf_engine(std::string name, const PerfTrial& trial, std::string missing,
                          std::string summary) {
  if (trial.ok()) return works(std::move(name), std::move(summary));
  const Error& refusal = *trial.refusal;
  return refused(std::move(name), in_the_way(refusal, std::move(missing)), refusal.why,
                 refusal.fix);
}

Verdict judge_pt(const Trials& trials) {
  return judge_perf_engine("pt", trials.pt, "no Intel Processor Trace",
                           "Intel Processor Trace can be opened and mapped");
}

Verdict judge_bts(const Trials& trials) {
  return judge_perf_engine("bts", trials.bts, "no Intel Branch Trace Store",
                           "Intel Branch Trace Store can be opened and mapped");
}

Verdict judge_lbr(const Machine& machine, const Trials& trials) {
  return judge_perf_engine(
      "lbr", trials.lbr, "no branch stack",
      machine.lbr_depth ? fmt::format("samples carry the last {} branches", *machine.lbr_depth)
                        : std::string("samples carry the last branches"));
}

Verdict judge_qemu(const Trials& trials) {
  if (trials.qemu.path.empty())
    return refused("qemu", "no qemu-x86_64", "there is none in PATH",
                   "sudo apt-get install qemu-user");
  if (!trials.qemu_has_plugins)
    return refused("qemu", "this qemu-x86_64 cannot load our recorder",
                   fmt::format("{} was built without plugins", trials.qemu.path), kTakeKnownQemu);
  if (!trials.qemu_records.empty())
    return refused("qemu", "our recorder does not run in this qemu-x86_64", trials.qemu_records,
                   kTakeKnownQemu);
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
  return judge_perf_engine(
      "perf events", trials.perf_software, "this kernel has none",
      fmt::format("allowed (kernel.perf_event_paranoid is {})", *machine.perf_event_paranoid));
}

}  // namespace

std::vector<Verdict> judge(const Machine& machine, const Trials& trials) {
  return {judge_pt(trials), judge_bts(trials), judge_lbr(machine, trials), judge_qemu(trials),
          judge_step(machine, trials)};
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
