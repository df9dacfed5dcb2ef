#include "plugin/engines/perf/refusal.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "decoder/base/file.h"
#include "decoder/base/process_status.h"
#include "plugin/engines/perf/pmu.h"
#include "plugin/engines/perf/slot_book.h"

namespace tailtrace::perf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kElsewhere =
    "tailtrace run --engine=qemu -- PROGRAM  (works without it, slower)";

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

std::string what_of(const Refusal& refusal) {
  std::string whom = refusal.target.tid > 0    ? fmt::format("thread {}", refusal.target.tid)
                     : refusal.target.tid == 0 ? std::string("this thread")
                                               : fmt::format("CPU {}", refusal.target.cpu);
  switch (refusal.step) {
    case Step::kOpen:
      return fmt::format("cannot watch {} with {}: {}", whom, purpose_name(refusal.purpose),
                         errno_text(refusal.error_number));
    case Step::kMapRing:
    case Step::kMapAux:
      return fmt::format("cannot map {} KiB for {} of {}: {}", refusal.asked_bytes / 1024,
                         purpose_name(refusal.purpose), whom, errno_text(refusal.error_number));
    case Step::kFilter:
      return fmt::format("cannot filter {} of {}: {}", purpose_name(refusal.purpose), whom,
                         errno_text(refusal.error_number));
    case Step::kControl:
      break;
  }
  return fmt::format("cannot control {} of {}: {}", purpose_name(refusal.purpose), whom,
                     errno_text(refusal.error_number));
}

// A value of /proc/self/status, "123 kB", in KiB.
std::uint64_t own_status_kib(const std::string& root, std::string_view name) {
  auto bytes = read_file(root + "/proc/self/status", 1 << 16);
  if (!bytes) return 0;
  std::uint64_t value = 0;
  for (char c : status_value(as_text(*bytes), name))
    if (c >= '0' && c <= '9') value = value * 10 + static_cast<std::uint64_t>(c - '0');
  return value;
}

std::string holders_text(const std::string& root) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (const Holder& holder : holders_of_events(root, kShown))
    text += fmt::format("{}{} ({}) has {} perf event{} open", text.empty() ? "" : ", ", holder.pid,
                        holder.name, holder.events, holder.events == 1 ? "" : "s");
  return text.empty() ? "no process that may be looked at has perf events open" : text;
}

struct Reason {
  ErrorCode code;
  std::string why;
  std::string fix;
  std::string now = std::string(kElsewhere);
};

bool is_intels(Purpose purpose) {
  return purpose == Purpose::kPt || purpose == Purpose::kBtsArea || purpose == Purpose::kBtsSamples;
}

// The processor's word for what it can, as /proc/cpuinfo has it; empty: there is none.
std::string cpu_flag(Purpose purpose) {
  if (purpose == Purpose::kPt) return "intel_pt";
  return is_intels(purpose) ? "bts" : "";
}

// Nobody here can do it: the processor, the hypervisor, or the kernel.
Reason missing_hardware(Purpose purpose, const Machine& machine) {
  const std::string_view name =
      purpose_name(purpose == Purpose::kBtsSamples ? Purpose::kBtsArea : purpose);
  auto reason = [](std::string why, std::string fix) {
    return Reason{ErrorCode::kNoEngine, std::move(why), std::move(fix)};
  };
  const std::string flag = cpu_flag(purpose);
  const bool has_it = !flag.empty() && machine.cpu.has(flag);
  if (purpose == Purpose::kBtsArea && has_it && machine.isolates_page_tables) {
    Reason isolated = reason(
        "the kernel isolates its page tables from user code (Meltdown), and "
        "has no intel_bts then",
        "");
    isolated.now = "branch samples record the same for users";
    return isolated;
  }
  if (!machine.hypervisor.empty())
    return reason(fmt::format("this is a virtual machine ({}) that is not given {}",
                              machine.hypervisor, name),
                  "record on the host itself");
  if (has_it)
    return reason(fmt::format("the processor has {}, but Linux {} registered nothing for it", name,
                              machine.kernel),
                  "a kernel with the x86 PMU drivers of perf events");
  if (is_intels(purpose) && machine.cpu.vendor != "GenuineIntel")
    return reason(fmt::format("{} is Intel's, and this processor is {}", name, machine.cpu.vendor),
                  "an Intel machine that has it");
  return reason(
      fmt::format("this processor ({}) has no {} that the kernel knows", machine.cpu.name, name),
      "a machine that has it");
}

bool is_behind_seccomp(const Machine& machine) { return machine.seccomp == 2; }

Reason no_rights(const Refusal& refusal, const Machine& machine) {
  int paranoid = machine.perf_event_paranoid.value_or(-1);
  bool all_powerful = machine.may(Capability::kSysAdmin);
  // What perf_event_paranoid forbids is EACCES.
  if (refusal.error_number == EPERM && is_behind_seccomp(machine))
    return {ErrorCode::kPermission,
            machine.container.empty()
                ? "a seccomp filter is on that does not let perf_event_open through"
                : fmt::format("the seccomp filter of {} does not let perf_event_open through",
                              machine.container),
            "start the container with --cap-add=PERFMON, or with a seccomp profile that allows "
            "perf_event_open"};
  if (!all_powerful && paranoid > 2)
    return {ErrorCode::kPermission, fmt::format("kernel.perf_event_paranoid is {}", paranoid),
            "sudo sysctl kernel.perf_event_paranoid=2"};
  bool privileged = all_powerful || machine.may(Capability::kPerfmon);
  if (!privileged && refusal.purpose == Purpose::kBtsArea && paranoid > 1)
    return {ErrorCode::kPermission,
            fmt::format("intel_bts shows kernel addresses, and kernel.perf_event_paranoid is {}",
                        paranoid),
            "sudo sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
            "branch samples record the same for users"};
  if (!privileged && refusal.attr != nullptr && refusal.attr->exclude_kernel == 0 && paranoid > 1)
    return {
        ErrorCode::kPermission,
        fmt::format("kernel code was asked for, and kernel.perf_event_paranoid is {}", paranoid),
        "sudo sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
        "user code can be traced without"};
  if (!privileged && refusal.target.tid < 0 && paranoid > 0)
    return {
        ErrorCode::kPermission,
        fmt::format("a whole CPU was asked for, and kernel.perf_event_paranoid is {}", paranoid),
        "sudo sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON",
        "single threads can be traced without"};
  return {ErrorCode::kPermission,
          fmt::format("this process may not look at the thread (kernel.perf_event_paranoid is {})",
                      paranoid),
          "run as the user whose process it is, or with CAP_PERFMON and CAP_SYS_PTRACE"};
}

// The kernel counts a user's buffers against perf_event_mlock_kb for every processor, and what goes
// beyond against the limit of locked memory of the process.
Reason locked_memory(const Refusal& refusal, const Machine& machine, const std::string& root) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  std::uint64_t pool_kib =
      static_cast<std::uint64_t>(machine.perf_event_mlock_kb.value_or(0)) *
      static_cast<std::uint64_t>(machine.cpu.count > 0 ? machine.cpu.count : 1);
  std::uint64_t pinned_kib = own_status_kib(root, "VmPin");
  std::uint64_t limit_kib = limit.rlim_cur / 1024;
  std::uint64_t free_kib = limit_kib > pinned_kib ? limit_kib - pinned_kib : 0;
  std::uint64_t asked_kib = refusal.asked_bytes / 1024;
  return {ErrorCode::kPermission,
          fmt::format("{} KiB were asked for; the user's pool for perf is {} KiB ({} KiB for each "
                      "of {} processors), and this process may lock {} KiB more (limit {} KiB)",
                      asked_kib, pool_kib, machine.perf_event_mlock_kb.value_or(0),
                      machine.cpu.count, free_kib, limit_kib),
          fmt::format("ulimit -l {}, or sudo sysctl kernel.perf_event_mlock_kb={}",
                      pinned_kib + asked_kib,
                      machine.perf_event_mlock_kb.value_or(0) + static_cast<long>(asked_kib)),
          "a smaller buffer"};
}

Reason busy(const std::string& root) {
  return {ErrorCode::kSystem,
          fmt::format("the hardware serves one tracer at a time, and Intel PT, BTS and last branch "
                      "records exclude each other on many processors; {}",
                      holders_text(root)),
          "end the other tracer"};
}

// What this process holds is known; the rest is a debugger's, or others' perf events.
Reason no_slot(const Refusal& refusal, const std::string& root) {
  const std::vector<std::string> ours = slots_held(refusal.target.tid);
  std::string who;
  for (const std::string& name : ours) who += (who.empty() ? "" : ", ") + name;
  if (ours.size() < kDebugRegisters)
    who += fmt::format(
        "{}{} by a debugger's hardware breakpoints and watchpoints or another "
        "process; {}",
        ours.empty() ? "" : "; ", kDebugRegisters - ours.size(), holders_text(root));
  return {ErrorCode::kSystem,
          fmt::format("all four debug registers of the thread are taken: {}", who),
          ours.empty() ? "delete a hardware breakpoint or watchpoint"
                       : "do without one of those, or delete a hardware breakpoint or watchpoint",
          "software breakpoints"};
}

// The kernel does not say which; the PMU has a file about it.
Reason too_many_filters(const std::string& root) {
  auto pmu = read_pmu(root, "intel_pt");
  const std::uint64_t ranges = pmu ? pmu->number("nr_addr_filters").value_or(0) : 0;
  if (ranges == 0)
    return {ErrorCode::kNoEngine, "this processor's Intel PT has no filters by address",
            "record without filters", ""};
  return {
      ErrorCode::kUsage,
      fmt::format("this processor's Intel PT has {} filters by address, and more were asked for",
                  ranges),
      fmt::format("name {} at most", ranges), ""};
}

// The kernel has a PMU that cannot do this; else nothing has.
Reason not_supported(const Refusal& refusal, const Machine& machine, const std::string& root) {
  if (refusal.step == Step::kFilter) return too_many_filters(root);
  const bool is_branches =
      refusal.purpose == Purpose::kBtsSamples || refusal.purpose == Purpose::kLbr;
  if (is_branches) return missing_hardware(refusal.purpose, machine);
  return {ErrorCode::kNoEngine, "this PMU cannot do what was asked", "a machine that has it"};
}

Reason invalid(Kernel& kernel, const Refusal& refusal, const Machine& machine) {
  if (refusal.step == Step::kMapAux)
    return {ErrorCode::kUsage,
            "the size of the buffer is not a power of two, or it has one already",
            "a size such as 64KiB or 1MiB"};
  std::string blamed;
  if (refusal.attr != nullptr)
    blamed = attribute_to_blame(kernel, *refusal.attr, refusal.target, refusal.error_number);
  // Its size and kind were looked at before.
  if (blamed.empty() && refusal.purpose == Purpose::kBreakpoint && refusal.attr != nullptr)
    return {ErrorCode::kUsage,
            fmt::format("no program has the address {:#x}", refusal.attr->bp_addr), "", ""};
  if (blamed.empty())
    return {ErrorCode::kUsage,
            fmt::format("Linux {} does not take the event, whatever single attribute is left out",
                        machine.kernel),
            "a newer kernel"};
  return {ErrorCode::kUsage,
          fmt::format("Linux {} takes the event without {}, and does not with it", machine.kernel,
                      blamed),
          fmt::format("do without {}, or use a newer kernel", blamed), ""};
}

Reason no_memory(const Refusal& refusal) {
  if (refusal.purpose == Purpose::kBtsArea)
    return {ErrorCode::kSystem,
            "intel_bts needs its buffer in one piece of physical memory: 4 MiB at most, less when "
            "memory is in pieces",
            "a smaller buffer", "branch samples take any size"};
  return {ErrorCode::kSystem, "there is not enough memory", "a smaller buffer"};
}

Reason reason_of(Kernel& kernel, const Refusal& refusal, const Machine& machine) {
  switch (refusal.error_number) {
    case ENOENT:
    case ENODEV:
      return missing_hardware(refusal.purpose, machine);
    case EPERM:
      if (refusal.step == Step::kMapAux || refusal.step == Step::kMapRing)
        return locked_memory(refusal, machine, kernel.root());
      return no_rights(refusal, machine);
    case EACCES:
      return no_rights(refusal, machine);
    case EBUSY:
      return busy(kernel.root());
    case ENOSPC:
      if (refusal.purpose == Purpose::kBreakpoint) return no_slot(refusal, kernel.root());
      break;
    case EOPNOTSUPP:
      return not_supported(refusal, machine, kernel.root());
    case EINVAL:
    case E2BIG:
      return invalid(kernel, refusal, machine);
    case ENOMEM:
      return no_memory(refusal);
    case EMFILE: {
      rlimit limit{};
      ::getrlimit(RLIMIT_NOFILE, &limit);
      return {ErrorCode::kSystem,
              fmt::format("each thread takes file descriptors, and this process may have {}",
                          limit.rlim_cur),
              "ulimit -n 65536", "trace fewer threads"};
    }
    case ESRCH:
      return {ErrorCode::kGone, "the thread is no longer there", "", ""};
    case ENOSYS:
      return {ErrorCode::kNoEngine,
              is_behind_seccomp(machine) ? "a seccomp filter hides perf_event_open"
                                         : "this kernel was built without perf events",
              "a kernel with CONFIG_PERF_EVENTS"};
    default:
      break;
  }
  return {ErrorCode::kSystem, errno_text(refusal.error_number), ""};
}

std::size_t count_events(const fs::path& descriptors) {
  std::size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator entry(descriptors, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (fs::read_symlink(entry->path(), ignored) == "anon_inode:[perf_event]") ++count;
  }
  return count;
}

}  // namespace

std::string_view purpose_name(Purpose purpose) {
  switch (purpose) {
    case Purpose::kPt:
      return "Intel PT";
    case Purpose::kBtsArea:
      return "Intel BTS";
    case Purpose::kBtsSamples:
      return "branch samples";
    case Purpose::kLbr:
      return "last branch records";
    case Purpose::kBreakpoint:
      return "a hardware breakpoint";
    case Purpose::kSideband:
      break;
  }
  return "side-band events";
}

std::vector<Holder> holders_of_events(const std::string& root, std::size_t limit) {
  std::vector<Holder> holders;
  std::error_code error;
  for (fs::directory_iterator entry(root + "/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    int pid = std::atoi(entry->path().filename().c_str());
    if (pid <= 0) continue;
    std::size_t events = count_events(entry->path() / "fd");
    if (events == 0) continue;
    auto name = read_file((entry->path() / "comm").string(), 256);
    std::string text = name ? std::string(as_text(*name)) : "?";
    while (!text.empty() && text.back() == '\n') text.pop_back();
    holders.push_back({pid, pid == ::getpid() ? text + ", this process" : text, events});
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.events > b.events; });
  if (holders.size() > limit) holders.resize(limit);
  return holders;
}

std::string attribute_to_blame(Kernel& kernel, const perf_event_attr& attr, Target target,
                               int error_number) {
  struct Part {
    const char* name;
    void (*remove)(perf_event_attr&);
  };
  static const Part kParts[] = {
      {"AUX pause and resume", [](auto& a) { set_aux_action(a, AuxAction::kNone); }},
      {"sigtrap", [](auto& a) { a.sigtrap = 0; }},
      {"remove_on_exec", [](auto& a) { a.remove_on_exec = 0; }},
      {"enable_on_exec", [](auto& a) { a.enable_on_exec = 0; }},
      {"build_id", [](auto& a) { a.build_id = 0; }},
      {"text_poke", [](auto& a) { a.text_poke = 0; }},
      {"context_switch", [](auto& a) { a.context_switch = 0; }},
      {"inherit", [](auto& a) { a.inherit = 0; }},
      {"write_backward", [](auto& a) { a.write_backward = 0; }},
      {"precise_ip", [](auto& a) { a.precise_ip = 0; }},
      {"clockid", [](auto& a) { a.use_clockid = 0, a.clockid = 0; }},
      {"branch_sample_type",
       [](auto& a) {
         a.branch_sample_type = 0;
         a.sample_type &= ~static_cast<__u64>(PERF_SAMPLE_BRANCH_STACK);
       }},
      {"sample_regs_user",
       [](auto& a) {
         a.sample_regs_user = 0;
         a.sample_type &= ~static_cast<__u64>(PERF_SAMPLE_REGS_USER);
       }},
      {"sample_period", [](auto& a) { a.sample_period = 0; }},
      {"its config bits", [](auto& a) { a.config = 0; }},
  };
  for (const Part& part : kParts) {
    perf_event_attr less = attr;
    part.remove(less);
    if (std::memcmp(&less, &attr, sizeof less) == 0) continue;
    UniqueFd fd(kernel.open(less, target, -1));
    if (fd.get() != -error_number) return part.name;
  }
  return {};
}

Error explain(Kernel& kernel, const Refusal& refusal) {
  Machine machine = read_machine(kernel.root());
  Reason reason = reason_of(kernel, refusal, machine);
  return {reason.code, what_of(refusal), reason.why, reason.fix, reason.now};
}

}  // namespace tailtrace::perf
