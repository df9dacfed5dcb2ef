#include "plugin/recorder/traced_process.h"

#include <elf.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>

#include "decoder/base/process_status.h"
#include "plugin/engines/machine.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

// Some that clone(2) makes are processes: those that do not send SIGCHLD at their end.
constexpr long kOptions = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT;

// Of asm-generic/siginfo.h: what the kernel says of traps that a tracer asked for. The last is told
// where a step led into a handler.
constexpr int kTrapBrkpt = 1, kTrapTrace = 2, kTrapHwbkpt = 4, kTrapNotify = SIGTRAP;

bool is_of_tracer(const siginfo_t& info) {
  return info.si_code == kTrapBrkpt || info.si_code == kTrapTrace || info.si_code == kTrapHwbkpt ||
         info.si_code == kTrapNotify;
}

// `error`: they could not be listed; ESRCH: there is no such process.
std::vector<pid_t> tasks_of(pid_t pid, std::error_code& error) {
  std::vector<pid_t> tids;
  std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", pid), error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    pid_t tid = 0;
    auto [stop, failed] = std::from_chars(name.data(), name.data() + name.size(), tid);
    if (failed == std::errc() && stop == name.data() + name.size()) tids.push_back(tid);
  }
  if (error == std::errc::no_such_file_or_directory) error = {ESRCH, std::generic_category()};
  return tids;
}

Error refusal(pid_t pid, int error) {
  std::string what = fmt::format("cannot attach to process {}", pid);
  if (error == ESRCH)
    return {ErrorCode::kGone, what, "there is no such process", "ps -e shows those that are there",
            ""};
  if (error != EPERM) return system_error(what, error);
  const std::string status = process_status(pid).value_or("");
  if (status_value(status, "State").starts_with('Z'))
    return {ErrorCode::kGone, what, "it has ended; its parent has not asked for its status", "",
            ""};
  if (status_value(status, "VmSize").empty())
    return {ErrorCode::kUsage, what, "it is a thread of the kernel, and no program", "", ""};
  if (const auto tracer = status_value(status, "TracerPid"); tracer != "0")
    return {ErrorCode::kPermission, what, fmt::format("process {} traces it already", tracer),
            "end that, or have it detach", ""};
  if (::geteuid() == 0 && !read_machine("").may(Capability::kSysPtrace))
    return {ErrorCode::kPermission, what, "root may not trace others here without CAP_SYS_PTRACE",
            "start the container with --cap-add=SYS_PTRACE", ""};
  return {ErrorCode::kPermission, what,
          "it is another user's, or kernel.yama.ptrace_scope forbids it",
          "sudo tailtrace attach, or sudo sysctl kernel.yama.ptrace_scope=0", ""};
}

int event_of(int status) { return status >> 16; }

unsigned long message_of(pid_t tid) {
  unsigned long message = 0;
  ::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &message);
  return message;
}

// A SIGTRAP that a tracer's wish made, and not the program.
bool is_our_trap(pid_t tid) {
  siginfo_t info{};
  return ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 && is_of_tracer(info);
}

// Whether such a trap is still on its way to a thread that stands: a step out of a system call that
// was interrupted.
bool has_trap_coming(pid_t tid) {
  siginfo_t infos[32];
  __ptrace_peeksiginfo_args wanted{0, 0, 32};
  const long count = ::ptrace(PTRACE_PEEKSIGINFO, tid, &wanted, infos);
  return std::any_of(infos, infos + std::max(count, 0l), [](const siginfo_t& info) {
    return info.si_signo == SIGTRAP && is_of_tracer(info);
  });
}

}  // namespace

Result<TracedProcess> TracedProcess::attach(pid_t pid) {
  TracedProcess process(pid);
  std::error_code error;
  if (tasks_of(pid, error).empty()) return fail(refusal(pid, error.value()));
  if (auto ok = process.seize_all(); !ok) return fail(std::move(ok.error()));
  return process;
}

TracedProcess TracedProcess::adopt(pid_t pid) {
  TracedProcess process(pid);
  process.threads_[pid] = {.stands = true, .told = true, .ending = false, .listens = false};
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, kOptions | PTRACE_O_EXITKILL);
  return process;
}

// Those that are made meanwhile by threads not held yet are found by looking again.
Result<void> TracedProcess::seize_all() {
  for (bool found = true; found;) {
    found = false;
    std::error_code unlisted;
    for (pid_t tid : tasks_of(pid_, unlisted)) {
      if (threads_.contains(tid)) continue;
      if (::ptrace(PTRACE_SEIZE, tid, nullptr, kOptions) == 0) {
        threads_[tid] = {};
        ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
        found = true;
      } else if (errno == EPERM && tid != pid_) {
        // Made by a thread that is held, it is held too, and will be told; or it is ending.
        continue;
      } else if (errno != ESRCH || tid == pid_) {
        const int error = errno;
        detach({});
        return fail(refusal(pid_, error));
      }
    }
    if (unlisted && unlisted.value() != ESRCH) {
      detach({});
      return fail(refusal(pid_, unlisted.value()));
    }
  }
  return {};
}

std::vector<pid_t> TracedProcess::threads() const {
  std::vector<pid_t> tids;
  for (const auto& [tid, thread] : threads_) tids.push_back(tid);
  return tids;
}

bool TracedProcess::is_ours(pid_t tid) const {
  return threads_.contains(tid) || is_thread_of(pid_, tid);
}

void TracedProcess::note(Stop stop) {
  if (WIFSTOPPED(stop.status) && !is_ours(stop.tid)) {
    ::ptrace(PTRACE_DETACH, stop.tid, nullptr, nullptr);
    return;
  }
  if (WIFSTOPPED(stop.status)) {
    threads_[stop.tid].stands = true;
    threads_[stop.tid].listens = false;
  }
  untold_.push_back(stop);
}

std::optional<TracedProcess::Event> TracedProcess::next() {
  for (;;) {
    while (!untold_.empty()) {
      Stop stop = untold_.front();
      untold_.pop_front();
      if (auto event = tell(stop)) return event;
    }
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL | WNOHANG);
    if (tid <= 0) return std::nullopt;
    note({tid, status});
  }
}

TracedProcess::Event::Kind TracedProcess::kind_of(Stop stop) {
  using Kind = Event::Kind;
  if (!WIFSTOPPED(stop.status)) return Kind::kGone;
  switch (event_of(stop.status)) {
    case 0:
      return WSTOPSIG(stop.status) == SIGTRAP && is_our_trap(stop.tid) ? Kind::kTrap
                                                                       : Kind::kSignal;
    case PTRACE_EVENT_EXIT:
      return Kind::kExits;
    case PTRACE_EVENT_EXEC:
      return Kind::kReplaced;
    case PTRACE_EVENT_STOP:
      return WSTOPSIG(stop.status) == SIGTRAP ? Kind::kNothing : Kind::kStopped;
    default:
      return Kind::kNothing;
  }
}

std::optional<TracedProcess::Event> TracedProcess::tell(Stop stop) {
  Event event{kind_of(stop), stop.tid, 0, stop.status};
  if (event.kind == Event::Kind::kGone) {
    threads_.erase(stop.tid);
    return event;
  }
  Thread& thread = threads_[stop.tid];
  if (event.kind == Event::Kind::kExits) {
    thread.ending = true;
    event.status = static_cast<int>(message_of(stop.tid));
  } else if (event.kind == Event::Kind::kReplaced) {
    std::erase_if(threads_, [&](const auto& entry) { return entry.first != stop.tid; });
    std::erase_if(untold_, [&](const Stop& other) { return other.tid != stop.tid; });
    thread.ending = false;  // it may have been the leader's number
  } else if (event.kind == Event::Kind::kSignal) {
    event.signal = WSTOPSIG(stop.status);
  }
  if (!thread.told && event.kind != Event::Kind::kExits) {
    thread.told = true;
    // What else it stands for is told behind its beginning.
    if (event.kind != Event::Kind::kNothing) untold_.push_front(stop);
    return Event{Event::Kind::kBegins, stop.tid, 0, 0};
  }
  return event;
}

void TracedProcess::resume(pid_t tid, int signal, bool step) {
  auto thread = threads_.find(tid);
  if (thread == threads_.end() || !thread->second.stands || is_to_be_told(tid)) return;
  thread->second.stands = false;
  ::ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, nullptr,
           static_cast<unsigned long>(signal));
}

void TracedProcess::listen(pid_t tid) {
  auto thread = threads_.find(tid);
  if (thread == threads_.end() || !thread->second.stands || is_to_be_told(tid)) return;
  thread->second.stands = false;
  thread->second.listens = true;
  ::ptrace(PTRACE_LISTEN, tid, nullptr, nullptr);
}

bool TracedProcess::stands(pid_t tid) const {
  auto thread = threads_.find(tid);
  return thread != threads_.end() && thread->second.stands;
}

bool TracedProcess::is_ending(pid_t tid) const {
  auto thread = threads_.find(tid);
  return thread == threads_.end() || thread->second.ending;
}

bool TracedProcess::is_to_be_told(pid_t tid) const {
  return std::ranges::any_of(untold_, [tid](const Stop& stop) { return stop.tid == tid; });
}

void TracedProcess::wait_for(pid_t tid) {
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(tid, &status, __WALL)) < 0 && errno == EINTR)
    ;
  if (got != tid) {
    threads_.erase(tid);
    return;
  }
  const bool made_one = WIFSTOPPED(status) && event_of(status) == PTRACE_EVENT_CLONE;
  if (made_one)
    if (const auto made = static_cast<pid_t>(message_of(tid)); is_ours(made))
      threads_.try_emplace(made);
  note({tid, status});
}

void TracedProcess::stop() {
  for (bool runs = true; runs;) {
    runs = false;
    for (pid_t tid : threads()) {
      auto thread = threads_.find(tid);
      // A thread that is ending does not stand again: a leader's end is told behind all others'.
      if (thread == threads_.end() || thread->second.stands || thread->second.ending) continue;
      if (is_to_be_told(tid)) continue;  // it is gone
      runs = true;
      ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
      wait_for(tid);
    }
  }
}

// It stands before its end; no signal comes to it any more.
bool TracedProcess::is_about_to_end(pid_t tid) const {
  return is_ending(tid) || std::ranges::any_of(untold_, [tid](const Stop& stop) {
           return stop.tid == tid && event_of(stop.status) == PTRACE_EVENT_EXIT;
         });
}

void TracedProcess::let_end(pid_t tid) {
  ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  threads_.erase(tid);
  std::erase_if(untold_, [tid](const Stop& stop) { return stop.tid == tid; });
}

void TracedProcess::wait_letting_end(pid_t tid) {
  while (threads_.contains(tid) && !stands(tid) && !is_to_be_told(tid)) {
    int status = 0;
    const pid_t got = ::waitpid(-1, &status, __WALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      threads_.erase(tid);
      return;
    }
    note({got, status});
    if (WIFSTOPPED(status) && is_about_to_end(got)) let_end(got);
  }
}

void TracedProcess::take_coming_traps() {
  for (pid_t tid : threads())
    while (stands(tid) && has_trap_coming(tid)) {
      int signal = 0;
      for (const Stop& stop : untold_)
        if (stop.tid == tid && kind_of(stop) == Event::Kind::kSignal)
          signal = WSTOPSIG(stop.status);
      std::erase_if(untold_, [&](const Stop& stop) { return stop.tid == tid; });
      // It gets no further: of what is coming, a trap comes first.
      resume(tid, signal, false);
      wait_letting_end(tid);
    }
}

void TracedProcess::detach(const std::map<pid_t, int>& signals) {
  stop();
  for (pid_t tid : threads())
    if (stands(tid) && is_about_to_end(tid)) let_end(tid);
  take_coming_traps();
  std::map<pid_t, int> owed = signals;
  for (const Stop& stop : untold_)
    if (kind_of(stop) == Event::Kind::kSignal) owed[stop.tid] = WSTOPSIG(stop.status);
  untold_.clear();
  for (const auto& [tid, thread] : threads_) {
    auto signal = owed.find(tid);
    ::ptrace(PTRACE_DETACH, tid, nullptr,
             static_cast<unsigned long>(signal == owed.end() ? 0 : signal->second));
  }
  threads_.clear();
}

std::optional<user_regs_struct> TracedProcess::registers(pid_t tid) const {
  user_regs_struct registers{};
  iovec space{&registers, sizeof registers};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &space) != 0) return std::nullopt;
  return registers;
}

std::optional<user_fpregs_struct> TracedProcess::vector_registers(pid_t tid) const {
  user_fpregs_struct registers{};
  iovec space{&registers, sizeof registers};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_FPREGSET, &space) != 0) return std::nullopt;
  return registers;
}

Address TracedProcess::pc(pid_t tid) const {
  errno = 0;
  long value = ::ptrace(PTRACE_PEEKUSER, tid, offsetof(user, regs.rip), nullptr);
  return {errno == 0 ? static_cast<std::uint64_t>(value) : 0};
}

}  // namespace tailtrace
