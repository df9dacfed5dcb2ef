#include "plugin/provider/followed_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "decoder/base/file.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

// Threads too, but not what other threads of this process have to wait for.
constexpr int kOurs = __WALL | __WNOTHREAD;

// Waits until it may, executes the program, and says why when it cannot.
[[noreturn]] void become(const std::string& path, const std::vector<std::string>& arguments, int go,
                         int failed) {
  char byte = 0;
  sigset_t none;  // of the signals that we wait for
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::read(go, &byte, 1) != 1) ::_exit(127);
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(path.c_str(), words.data());
  const int error = errno;
  if (::write(failed, &error, sizeof error) < 0) ::_exit(127);
  ::_exit(127);
}

// Lets a thread go on. One that the system will not let go would be waited for for ever, and is
// killed; one that is gone tells so itself. Errors: why it was killed.
Result<void> resume(pid_t tid, int signal, __ptrace_request how = PTRACE_CONT) {
  if (::ptrace(how, tid, nullptr, static_cast<unsigned long>(signal)) == 0 || errno == ESRCH)
    return {};
  Error refused = system_error(fmt::format("cannot let thread {} go on", tid));
  refused.now = "the program was ended";
  ::kill(tid, SIGKILL);
  // At its end already, it does not hear that.
  ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  return fail(std::move(refused));
}

Address pc_of(pid_t tid) {
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0) return {};
  return {registers.rip};
}

// An instruction of one byte that stops who executes it.
constexpr unsigned long kTrap = 0xcc;

bool write_code(pid_t tid, Address address, unsigned long code) {
  return ::ptrace(PTRACE_POKETEXT, tid, address.value, code) == 0;
}

bool set_pc(pid_t tid, Address pc) {
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0) return false;
  registers.rip = pc.value;
  return ::ptrace(PTRACE_SETREGS, tid, nullptr, &registers) == 0;
}

constexpr int kTrapPerf = 6;  // of a perf event (asm-generic/siginfo.h: TRAP_PERF)

bool is_trap(pid_t tid, int signal, int code) {
  siginfo_t info{};
  return signal == SIGTRAP && ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 &&
         info.si_code == code;
}

}  // namespace

Result<FollowedProgram> FollowedProgram::start(const std::string& path,
                                               const std::vector<std::string>& arguments) {
  int go[2], failed[2];
  if (::pipe2(go, O_CLOEXEC) != 0) return fail(system_error("cannot start " + path));
  UniqueFd go_out(go[0]), go_in(go[1]);
  if (::pipe2(failed, O_CLOEXEC) != 0) return fail(system_error("cannot start " + path));
  UniqueFd failed_out(failed[0]), failed_in(failed[1]);
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start " + path));
  if (pid == 0) {
    go_in.reset();  // the one end of ours: should we be killed, it does not wait for ever
    become(path, arguments, go[0], failed[1]);
  }
  failed_in.reset();
  FollowedProgram program(pid);
  constexpr long kOptions =
      PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT;
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0)
    return fail(system_error("cannot trace " + path));
  if (::write(go_in.get(), "", 1) != 1) return fail(system_error("cannot start " + path));
  for (;;) {
    int status = 0;
    if (::waitpid(pid, &status, __WALL) != pid) return fail(system_error("cannot start " + path));
    if (WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXEC) return program;
    if (WIFSTOPPED(status)) {
      if (auto ok = resume(pid, status >> 16 == 0 ? WSTOPSIG(status) : 0); !ok)
        return fail(std::move(ok.error()));
      continue;
    }
    program.threads_.clear();
    if (::read(failed_out.get(), &errno, sizeof errno) != sizeof errno) errno = ECHILD;
    return fail(system_error("cannot start " + path));
  }
}

FollowedProgram::FollowedProgram(FollowedProgram&& other) noexcept
    : pid_(other.pid_), threads_(std::exchange(other.threads_, {})) {}

FollowedProgram::~FollowedProgram() {
  if (threads_.empty()) return;
  ::kill(pid_, SIGKILL);
  // Even so, its threads may stop once more, at their ends; the first one's is told last.
  int status = 0;
  for (pid_t tid; (tid = ::waitpid(-1, &status, kOurs)) > 0 || errno == EINTR;) {
    if (tid > 0 && WIFSTOPPED(status))
      (void)resume(tid, 0).has_value();
    else if (tid == pid_)
      return;
  }
}

Result<void> FollowedProgram::take_stop(pid_t tid, int status, const Watcher& watcher) {
  const int event = status >> 16, signal = WSTOPSIG(status);
  if (!threads_.contains(tid)) {
    // It may be a process: one that clone(2) made, which does not send SIGCHLD at its end.
    if (!is_thread_of(pid_, tid)) return resume(tid, 0, PTRACE_DETACH);
    threads_.insert(tid);
    watcher.begins({pid_, tid});
  }
  if (event == PTRACE_EVENT_EXIT) watcher.ends({pid_, tid}, pc_of(tid));
  if (event == PTRACE_EVENT_EXEC && watcher.executed) watcher.executed({pid_, tid});
  const bool is_stray = watcher.drops_stray_traps && event == 0 && is_trap(tid, signal, TRAP_BRKPT);
  const bool is_stop = watcher.stopped && event == 0 && is_trap(tid, signal, kTrapPerf);
  if (is_stop) watcher.stopped({pid_, tid});
  const bool is_job_control = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
  if (is_job_control) return resume(tid, 0, PTRACE_LISTEN);
  return resume(tid, event == 0 && !is_stray && !is_stop ? signal : 0);
}

Result<void> FollowedProgram::run_to(Address place) {
  auto refused = [] { return fail(system_error("cannot run the program to where it begins")); };
  errno = 0;
  const auto code =
      static_cast<unsigned long>(::ptrace(PTRACE_PEEKTEXT, pid_, place.value, nullptr));
  if (errno != 0 || !write_code(pid_, place, (code & ~0xfful) | kTrap)) return refused();
  Watcher nobody;
  nobody.begins = [](ThreadId) {};
  nobody.ends = [](ThreadId, Address) {};
  const Address behind_trap{place.value + 1};
  Result<void> resumed = resume(pid_, 0);
  while (resumed) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, kOurs);
    if (tid < 0 && errno == EINTR) continue;
    if (tid < 0) return fail(system_error("cannot wait for the program"));
    if (!WIFSTOPPED(status)) {
      threads_.erase(tid);
      if (tid != pid_) continue;
      return fail(ErrorCode::kGone, "the program ended before its own code began");
    }
    const bool is_trap = status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP;
    if (is_trap && tid == pid_ && pc_of(pid_) == behind_trap)
      return write_code(pid_, place, code) && set_pc(pid_, place) ? Result<void>() : refused();
    resumed = take_stop(tid, status, nobody);
  }
  return resumed;
}

// It returns to where it stands.
Result<std::uint64_t> FollowedProgram::result_of(Address function) {
  constexpr std::uint64_t kRedZone_bytes = 128, kStackAlignment_bytes = 16;
  user_regs_struct before{}, registers{};
  if (::ptrace(PTRACE_GETREGS, pid_, nullptr, &before) != 0)
    return fail(system_error("cannot call a function of the program"));
  registers = before;
  registers.rsp = (before.rsp - kRedZone_bytes) / kStackAlignment_bytes * kStackAlignment_bytes;
  registers.rsp -= sizeof before.rip;
  registers.rip = function.value;
  if (::ptrace(PTRACE_POKEDATA, pid_, registers.rsp, before.rip) != 0 ||
      ::ptrace(PTRACE_SETREGS, pid_, nullptr, &registers) != 0)
    return fail(system_error("cannot call a function of the program"));
  if (auto ok = run_to({before.rip}); !ok) return fail(std::move(ok.error()));
  if (::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) != 0 ||
      ::ptrace(PTRACE_SETREGS, pid_, nullptr, &before) != 0)
    return fail(system_error("cannot return from a function of the program"));
  return registers.rax;
}

// The end of its first thread is told behind all others' ends. This process may have children
// besides: those of who executed it.
Result<int> FollowedProgram::follow(const Watcher& watcher) {
  Result<void> resumed = resume(pid_, 0);
  for (;;) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, kOurs | (watcher.meanwhile ? WNOHANG : 0));
    if (tid == 0) {
      watcher.meanwhile();
    } else if (tid > 0 && WIFSTOPPED(status)) {
      if (auto ok = take_stop(tid, status, watcher); !ok && resumed) resumed = std::move(ok);
    } else if (tid == pid_) {
      threads_.clear();
      if (!resumed) return fail(std::move(resumed.error()));
      return status;
    } else if (tid > 0) {
      threads_.erase(tid);
    } else if (errno == ECHILD) {
      threads_.clear();
      return fail(ErrorCode::kGone, "the program is gone", "nobody knows how it ended");
    } else if (errno != EINTR) {
      return fail(system_error("cannot wait for the program"));
    }
  }
}

}  // namespace tailtrace
