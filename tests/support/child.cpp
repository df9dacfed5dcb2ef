#include "tests/support/child.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

namespace tailtrace {
namespace {

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, __WALL) < 0) assert(errno == EINTR);
  return status;
}

// A virtual machine may forget which debug register was hit. Linux takes such an exception for an
// int1 instruction and sends SIGTRAP (seen on 6.18); without the signal, the instruction at the
// breakpoint is executed again, and its hit is counted then.
bool is_forgotten_hit(const siginfo_t& info) {
  return info.si_signo == SIGTRAP && info.si_code == TRAP_BRKPT;
}

}  // namespace

Child::Child(std::vector<std::function<void()>> parts) {
  pid_ = ::fork();
  assert(pid_ >= 0);
  if (pid_ == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    for (const auto& part : parts) {
      ::raise(SIGSTOP);
      part();
    }
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = wait_for(pid_);
  assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
}

Child::~Child() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  for (int status = wait_for(pid_); !WIFEXITED(status) && !WIFSIGNALED(status);)
    status = wait_for(pid_);
}

bool Child::resume(int request, int signal) {
  ::ptrace(static_cast<__ptrace_request>(request), pid_, nullptr, signal);
  int status = wait_for(pid_);
  ended_ = !WIFSTOPPED(status);
  return !ended_;
}

bool Child::run() {
  int signal = 0;
  for (;;) {
    if (!resume(PTRACE_CONT, signal)) return false;
    siginfo_t info{};
    ::ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &info);
    if (info.si_signo == SIGSTOP) return true;
    signal = is_forgotten_hit(info) ? 0 : info.si_signo;
  }
}

bool Child::step() { return resume(PTRACE_SINGLESTEP, 0); }

user_regs_struct Child::registers() const {
  user_regs_struct registers{};
  ::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
  return registers;
}

}  // namespace tailtrace
