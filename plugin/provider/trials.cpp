#include "plugin/provider/trials.h"

#include <cpuid.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "decoder/base/file.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/provider/child_process.h"
#include "plugin/provider/lldb_program.h"

namespace tailtrace {
namespace {

constexpr std::size_t kTrialAux_bytes = 64u << 10;
constexpr std::uint64_t kTrialRing_records = 1024;

perf_event_attr event_of(std::uint32_t type, std::uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  return attr;
}

// An event of this thread.
UniqueFd open_event(perf_event_attr attr, Trial& trial) {
  long fd = ::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  trial.error_number = fd < 0 ? errno : 0;
  return UniqueFd(static_cast<int>(fd));
}

// Maps a small AUX area, as recording does: the control page, then the buffer read-only.
Trial map_aux(int fd) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* base = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return {errno};
  auto* control = static_cast<perf_event_mmap_page*>(base);
  control->aux_offset = page;
  control->aux_size = kTrialAux_bytes;
  void* aux = ::mmap(nullptr, kTrialAux_bytes, PROT_READ, MAP_SHARED, fd,
                     static_cast<off_t>(control->aux_offset));
  Trial trial{aux == MAP_FAILED ? errno : 0};
  if (aux != MAP_FAILED) ::munmap(aux, kTrialAux_bytes);
  ::munmap(base, page);
  return trial;
}

void try_perf(const Machine& machine, Trials& trials) {
  open_event(event_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK), trials.perf_software);
  if (const Pmu* pmu = machine.pmu("intel_pt")) {
    UniqueFd fd =
        open_event(event_of(static_cast<std::uint32_t>(pmu->type), 0), trials.pt.emplace());
    if (fd) trials.pt_map = map_aux(fd.get());
  }
  // The kernel turns every single branch with exactly these fields into BTS.
  perf_event_attr bts = event_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  bts.sample_period = 1;
  bts.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
  if (machine.cpu.has("bts")) open_event(bts, trials.bts.emplace());
  perf_event_attr lbr = event_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  lbr.sample_period = 100'000;
  lbr.sample_type = PERF_SAMPLE_BRANCH_STACK;
  lbr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
  if (machine.lbr_depth) open_event(lbr, trials.lbr.emplace());
}

// Waits for the child's next stop. Nothing but the child's end can come instead.
bool wait_for_stop(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFSTOPPED(status);
}

Trial step_child() {
  pid_t child = ::fork();
  if (child < 0) return {errno};
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(errno);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return {WEXITSTATUS(status) == 0 ? ECHILD : WEXITSTATUS(status)};
  Trial trial;
  if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0)
    trial.error_number = errno;
  else if (!wait_for_stop(child))
    trial.error_number = ESRCH;
  ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return trial;
}

Tool find_tool(const std::string& name) {
  Tool tool{name, path_of_program(name), {}};
  if (tool.path.empty()) return tool;
  auto outcome = run_program({tool.path, "--version"});
  if (outcome && outcome->status == 0) tool.version = version_in(outcome->output);
  return tool;
}

// Records the shortest program there is. Why that did not work; empty when it did.
std::string try_qemu(const std::string& qemu) {
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  QemuOptions options;
  options.program = {"/bin/sh", "-c", ":"};
  options.stdio = {null.get(), null.get(), null.get()};
  options.ring_records = kTrialRing_records;
  options.qemu = qemu;
  auto process = QemuProcess::launch(options);
  if (!process) return process.error().to_line();
  auto status = process->wait();
  if (!status) return status.error().to_line();
  if (*status != 0) return "the program that was tried did not end as it should";
  auto engine = QemuEngine::open(process->process_folder());
  if (!engine) return engine.error().to_line();
  auto threads = (*engine)->threads();
  if (!threads) return threads.error().to_line();
  if (threads->empty()) return "the program that was tried left no history";
  auto snapshot = (*engine)->last_snapshot(threads->front().thread, kTrialRing_records);
  if (!snapshot) return snapshot.error().to_line();
  return snapshot->records.size() < 2 ? "the program that was tried left no history" : "";
}

void try_lldb(Trials& trials) {
  const char* search_path = std::getenv("PATH");
  auto path = find_lldb(search_path == nullptr ? "" : search_path);
  if (path)
    trials.lldb = find_tool(*path);
  else
    trials.no_lldb = std::move(path.error());
  trials.lldb.name = "lldb";
}

void try_tools(Trials& trials) {
  trials.gdb = find_tool("gdb");
  trials.gdbserver = find_tool("gdbserver");
  try_lldb(trials);
  const char* own_qemu = std::getenv("TAILTRACE_QEMU");
  trials.qemu = find_tool(own_qemu != nullptr ? own_qemu : "qemu-x86_64");
  if (trials.qemu.path.empty()) return;
  auto help = run_program({trials.qemu.path, "-h"});
  trials.qemu_has_plugins = help && help->output.find("\n-plugin ") != std::string::npos;
  if (trials.qemu_has_plugins) trials.qemu_records = try_qemu(trials.qemu.path);
}

}  // namespace

std::string hypervisor_signature() {
  // Signatures as the vendors' interface documents give them.
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"KVMKVMKVM", "KVM"},     {"Microsoft Hv", "Hyper-V"}, {"VMwareVMware", "VMware"},
      {"XenVMMXenVMM", "Xen"},  {"TCGTCGTCGTCG", "QEMU"},    {"VBoxVBoxVBox", "VirtualBox"},
      {"bhyve bhyve ", "bhyve"}};
  unsigned eax = 0, text[3] = {};
  __cpuid(1, eax, text[0], text[1], text[2]);
  constexpr unsigned kHypervisorPresent = 1u << 31;  // leaf 1, ECX
  if ((text[1] & kHypervisorPresent) == 0) return {};
  __cpuid(0x40000000, eax, text[0], text[1], text[2]);
  char signature[sizeof text + 1] = {};
  std::memcpy(signature, text, sizeof text);
  for (auto [written, name] : kNames)
    if (written == signature) return std::string(name);
  return {};
}

std::string version_in(const std::string& text) {
  // The last on the first line; what distributors add stands in brackets before or behind it.
  std::string line = text.substr(0, text.find('\n'));
  line = std::regex_replace(line, std::regex(R"(\([^)]*\))"), "");
  std::smatch match;
  return std::regex_search(line, match, std::regex(R"(\d+(\.\d+)+)")) ? match.str() : "";
}

Trials try_machine(const Machine& machine) {
  Trials trials;
  try_perf(machine, trials);
  trials.ptrace_step = step_child();
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    trials.memlock_limit_bytes = static_cast<std::int64_t>(limit.rlim_cur);
  try_tools(trials);
  return trials;
}

}  // namespace tailtrace
