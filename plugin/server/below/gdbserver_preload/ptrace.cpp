// libtailtrace_gdbserver.so, preloaded into gdbserver; and into lldb-server, to tell of new
// threads and to make steps in rows.
//
// Each thread that it attaches to stops by a SIGSTOP of the kernel's, and others it stops by one of
// its own. Where another thread gets a signal meanwhile, or the thread becomes another by an
// execve, gdbserver takes the one for a signal of the program's, which it delivers when it resumes
// or lets go of it, and the program stands still for ever: in here it is nobody's.
//
// After each step it asks the thread's debug registers whether a watchpoint stopped it. Where
// another thread executes a program meanwhile there is no such thread any more, and gdbserver ends:
// in here it was no watchpoint, and gdbserver finds out by itself that the thread is gone.
//
// Where the program is killed while it stops all threads, it would crash: in here a thread that
// stands ends later (held_ends.h).
//
// In all-stop nobody is told of new threads before the next stop: in here we are, before they run
// (new_threads.h).
//
// In here it makes many steps where it is asked for one, if we want that (row_of_steps.h).
//
// Where (before 14) AVX-512's registers lie in other places than Intel's it would read and write
// them back where others are, and the program would go on with wrong ones: in here those are not
// seen, gdbserver knows the registers up to AVX, and all others stay as they are. Where there are
// more than it has room for, as with AMX, the kernel would take none from it: in here the others
// are put behind them.
//
// What the kernel puts into the unused bytes of an XSAVE area, and that it takes whole ones only,
// is in its ptrace interface for NT_X86_XSTATE; that PTRACE_ATTACH sends the signal itself, as no
// program can, in siginfo_t::si_code.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "plugin/server/below/gdbserver_preload/held_ends.h"
#include "plugin/server/below/gdbserver_preload/new_threads.h"
#include "plugin/server/below/gdbserver_preload/row_of_steps.h"
#include "plugin/server/below/gdbserver_preload/xsave_layout.h"

namespace {

using tailtrace::HeldEnds;
using tailtrace::RowOfSteps;
using tailtrace::StepRowMemory;
using tailtrace::XsaveLayout;

constexpr std::size_t kComponentsOfKernel_bytes = 464;  // where the kernel says what there is
constexpr std::size_t kComponents_bytes = 512;          // where XSAVE says what it holds
constexpr std::size_t kLargest_bytes = 1 << 16;

using Ptrace = RowOfSteps::Ptrace;

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

Ptrace real_ptrace() {
  static const auto found = real<Ptrace>("ptrace");
  return found;
}

HeldEnds& held_ends() {
  static HeldEnds ends(real<HeldEnds::Waitpid>("waitpid"));
  return ends;
}

std::uint64_t word_at(const std::uint8_t* area, std::size_t place) {
  std::uint64_t word = 0;
  std::memcpy(&word, area + place, sizeof word);
  return word;
}

void put_word(std::uint8_t* area, std::size_t place, std::uint64_t word) {
  std::memcpy(area + place, &word, sizeof word);
}

// What gdbserver may see.
struct Seen {
  std::uint64_t components;
  std::size_t end_bytes;
};

const XsaveLayout& layout() {
  static const XsaveLayout known = XsaveLayout::of_processor();
  return known;
}

Seen seen() {
  if (layout().is_elsewhere) return {XsaveLayout::kUpToAvx, XsaveLayout::kEndOfAvx_bytes};
  return {XsaveLayout::kAll, XsaveLayout::kEndOfAll_bytes};
}

long get(pid_t pid, void* type, iovec& area) {
  const long result = real_ptrace()(PTRACE_GETREGSET, pid, type, &area);
  auto* bytes = static_cast<std::uint8_t*>(area.iov_base);
  for (std::size_t place : {kComponentsOfKernel_bytes, kComponents_bytes})
    if (result == 0 && area.iov_len >= place + sizeof(std::uint64_t))
      put_word(bytes, place, word_at(bytes, place) & seen().components);
  return result;
}

// The kernel takes whole areas only.
long set(pid_t pid, void* type, const iovec& known) {
  std::uint8_t whole[kLargest_bytes];
  iovec area = {whole, sizeof whole};
  const long result = real_ptrace()(PTRACE_GETREGSET, pid, type, &area);
  if (result != 0 || known.iov_len < kComponents_bytes + sizeof(std::uint64_t)) return result;
  const auto* bytes = static_cast<const std::uint8_t*>(known.iov_base);
  const std::uint64_t held = word_at(whole, kComponents_bytes);
  const std::uint64_t of_kernel = word_at(whole, kComponentsOfKernel_bytes);
  const std::uint64_t wanted = word_at(bytes, kComponents_bytes);
  const auto [components, end_bytes] = seen();
  std::memcpy(whole, bytes, std::min({known.iov_len, area.iov_len, end_bytes}));
  put_word(whole, kComponentsOfKernel_bytes, of_kernel);
  put_word(whole, kComponents_bytes, (held & ~components) | (wanted & components));
  return real_ptrace()(PTRACE_SETREGSET, pid, type, &area);
}

// Whether a thread stands for a signal that it was attached to or stopped by.
bool is_own_stop(pid_t tid) {
  siginfo_t info{};
  if (real_ptrace()(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0 || info.si_signo != SIGSTOP)
    return false;
  return info.si_code == SI_KERNEL || (info.si_code == SI_TKILL && info.si_pid == ::getpid());
}

bool is_run(int request) {
  return request == PTRACE_CONT || request == PTRACE_SINGLESTEP || request == PTRACE_SYSCALL;
}

bool is_delivery(int request, void* signal) {
  return (is_run(request) || request == PTRACE_DETACH) &&
         reinterpret_cast<std::uintptr_t>(signal) == SIGSTOP;
}

// Whether it is to read one of the debug registers.
bool is_debug_register(int request, void* place) {
  constexpr std::size_t kBegin = offsetof(user, u_debugreg);
  const auto offset = reinterpret_cast<std::uintptr_t>(place);
  return request == PTRACE_PEEKUSER && offset >= kBegin &&
         offset < kBegin + sizeof(user::u_debugreg);
}

// 0 where the thread is gone.
long debug_register(pid_t tid, void* place) {
  const long value = real_ptrace()(PTRACE_PEEKUSER, tid, place, nullptr);
  if (value != -1 || errno != ESRCH) return value;
  errno = 0;  // no value of a register tells of an error
  return 0;
}

int new_threads = -1;  // nobody is to be told
bool nothing_else = false;

__attribute__((constructor)) void take_new_threads() {
  const char* number = ::getenv(tailtrace::kNewThreadsVariable);
  if (number == nullptr) return;
  new_threads = std::atoi(number);
  nothing_else = std::strchr(number, tailtrace::kNothingElse) != nullptr;
  ::fcntl(new_threads, F_SETFD, FD_CLOEXEC);
  ::unsetenv(tailtrace::kNewThreadsVariable);
}

constinit std::optional<RowOfSteps> row;  // nobody wants any

__attribute__((constructor)) void take_row() {
  const char* number = ::getenv(tailtrace::kStepRowVariable);
  if (number == nullptr) return;
  const int fd = std::atoi(number);
  void* place = ::mmap(nullptr, sizeof(StepRowMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  ::unsetenv(tailtrace::kStepRowVariable);
  if (place != MAP_FAILED) row.emplace(*static_cast<StepRowMemory*>(place), real_ptrace());
}

// Whether what the kernel is asked about is a thread that this one has made.
bool is_new_thread(int request, pid_t tid) {
  siginfo_t info{};
  return new_threads >= 0 && request == PTRACE_GETEVENTMSG &&
         real_ptrace()(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 &&
         info.si_code >> 8 == PTRACE_EVENT_CLONE;
}

// Returns when note was taken of it, or nobody is there any more.
void tell_of_thread(std::int32_t tid) {
  char noted = 0;
  ssize_t got = ::send(new_threads, &tid, sizeof tid, MSG_NOSIGNAL);
  if (got == sizeof tid)
    while ((got = ::recv(new_threads, &noted, sizeof noted, 0)) < 0 && errno == EINTR) {
    }
  if (got <= 0) new_threads = -1;
}

// The program that gdbserver starts is not to have it, nor the descriptor by which it was named.
__attribute__((constructor)) void leave_environment() {
  const char* all = ::getenv("LD_PRELOAD");
  int fd = -1;
  if (all != nullptr && std::sscanf(all, "/proc/self/fd/%d", &fd) == 1) ::close(fd);
  const char* others = all == nullptr ? nullptr : std::strchr(all, ':');
  if (others == nullptr)
    ::unsetenv("LD_PRELOAD");
  else
    ::setenv("LD_PRELOAD", others + 1, 1);
}

long as_gdbserver_means(int request, pid_t pid, void* address, void* data) {
  if (is_delivery(request, data) && is_own_stop(pid)) data = nullptr;
  if (is_debug_register(request, address)) return debug_register(pid, address);
  const bool is_area =
      layout().is_other() && reinterpret_cast<std::uintptr_t>(address) == NT_X86_XSTATE;
  if (is_area && request == PTRACE_GETREGSET) return get(pid, address, *static_cast<iovec*>(data));
  if (is_area && request == PTRACE_SETREGSET) return set(pid, address, *static_cast<iovec*>(data));
  return real_ptrace()(request, pid, address, data);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) long ptrace(__ptrace_request request, ...) {
  va_list arguments;
  va_start(arguments, request);
  const pid_t pid = va_arg(arguments, pid_t);
  void* address = va_arg(arguments, void*);
  void* data = va_arg(arguments, void*);
  va_end(arguments);
  if (!nothing_else && is_run(request) && !held_ends().resume(pid)) return 0;
  const long result = nothing_else ? real_ptrace()(request, pid, address, data)
                                   : as_gdbserver_means(request, pid, address, data);
  if (result == 0 && request == PTRACE_SINGLESTEP && data == nullptr && row) row->follow(pid);
  if (result == 0 && is_new_thread(request, pid))
    tell_of_thread(static_cast<std::int32_t>(*static_cast<unsigned long*>(data)));
  return result;
}

extern "C" __attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int* status,
                                                                int options) {
  static const auto plain = real<HeldEnds::Waitpid>("waitpid");
  return nothing_else ? plain(pid, status, options) : held_ends().wait(pid, status, options);
}

extern "C" __attribute__((visibility("default"))) int poll(pollfd* polled, nfds_t count,
                                                           int timeout_ms) {
  static const auto plain = real<int (*)(pollfd*, nfds_t, int)>("poll");
  if (!nothing_else) held_ends().before_poll(count);
  return plain(polled, count, timeout_ms);
}
