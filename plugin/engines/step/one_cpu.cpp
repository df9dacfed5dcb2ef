#include "plugin/engines/step/one_cpu.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

// A few steps are not worth it; after many the processor may be one that others use.
constexpr std::size_t kLeast_steps = 64, kMost_steps = 1 << 14;

// Whether a call asks where it may run, or makes what inherits that; by its number of either kind.
bool is_about_cpus(std::uint64_t call) {
  constexpr std::uint64_t kOf32Bits[] = {2, 120, 190, 241, 242};  // asm/unistd_32.h, the same
  constexpr std::uint64_t kOf64Bits[] = {
      SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_sched_getaffinity, SYS_sched_setaffinity};
  return std::ranges::find(kOf64Bits, call) != std::end(kOf64Bits) ||
         std::ranges::find(kOf32Bits, call) != std::end(kOf32Bits);
}

}  // namespace

void OneCpu::step(ThreadId thread, std::optional<std::uint64_t> call, std::size_t steps) {
  if (call && is_about_cpus(*call)) {
    asking_.insert(thread.tid);
    return leave();
  }
  asking_.erase(thread.tid);
  const bool were_few = steps_ < kLeast_steps;
  steps_ += steps;
  if (!were_few && steps_ >= kMost_steps) return leave();
  if (!were_few || steps_ < kLeast_steps) return;
  std::erase_if(asking_, [&](std::int32_t tid) { return !is_thread_of(thread.pid, tid); });
  if (asking_.empty()) enter(thread.pid);
}

void OneCpu::enter(std::int32_t pid) {
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE) return;
  CPU_ZERO(&one_);
  CPU_SET(here, &one_);
  bool all = bind(::gettid()) && (tracer_ < 0 || bind(tracer_));
  for (const ThreadId thread : threads_of("", pid)) all = all && bind(thread.tid);
  if (!all) leave();
}

bool OneCpu::bind(pid_t tid) {
  cpu_set_t could;
  CPU_ZERO(&could);
  if (::sched_getaffinity(tid, sizeof could, &could) != 0) return false;
  cpu_set_t both;
  CPU_AND(&both, &could, &one_);
  if (!CPU_EQUAL(&both, &one_) || ::sched_setaffinity(tid, sizeof one_, &one_) != 0) return false;
  bound_.emplace_back(tid, could);
  return true;
}

void OneCpu::leave() {
  for (const auto& [tid, could] : bound_) {
    cpu_set_t now;
    CPU_ZERO(&now);
    // Another one may have been told by somebody else.
    if (::sched_getaffinity(tid, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one_))
      ::sched_setaffinity(tid, sizeof could, &could);
  }
  bound_.clear();
  steps_ = 0;
}

}  // namespace tailtrace
