#include "plugin/provider/trials.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <regex>

#include "decoder/base/file.h"
#include "plugin/engines/perf/event.h"
#include "plugin/engines/perf/perf_engine.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/provider/child_process.h"
#include "plugin/provider/lldb_program.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kTrialRing_records = 1024;

PerfTrial trial_of(Result<void> tried) {
  if (tried) return {};
  return {std::move(tried.error())};
}

// An event of this thread that any machine has.
Result<void> try_software() {
  perf_event_attr attr = perf::plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
  attr.disabled = 1;
  auto event = perf::Event::open(perf::real_kernel(), perf::Purpose::kSideband, attr, {0, -1});
  if (!event) return fail(std::move(event.error()));
  return {};
}

void try_perf(Trials& trials) {
  auto hardware = [](perf::Hardware what) {
    return trial_of(perf::try_hardware(perf::real_kernel(), what));
  };
  trials.perf_software = trial_of(try_software());
  trials.pt = hardware(perf::Hardware::kPt);
  trials.bts = hardware(perf::Hardware::kBts);
  trials.lbr = hardware(perf::Hardware::kLbr);
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
  auto found = find_lldb(search_path == nullptr ? "" : search_path);
  trials.lldb.name = "lldb";
  if (!found) {
    trials.no_lldb = std::move(found.error());
    return;
  }
  trials.lldb.path = found->path;
  trials.lldb.version = version_in(found->version_text);
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

std::string version_in(const std::string& text) {
  // The last on the first line; what distributors add stands in brackets before or behind it.
  std::string line = text.substr(0, text.find('\n'));
  line = std::regex_replace(line, std::regex(R"(\([^)]*\))"), "");
  std::smatch match;
  return std::regex_search(line, match, std::regex(R"(\d+(\.\d+)+)")) ? match.str() : "";
}

Trials try_machine() {
  Trials trials;
  try_perf(trials);
  trials.ptrace_step = step_child();
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    trials.memlock_limit_bytes = static_cast<std::int64_t>(limit.rlim_cur);
  try_tools(trials);
  return trials;
}

}  // namespace tailtrace
