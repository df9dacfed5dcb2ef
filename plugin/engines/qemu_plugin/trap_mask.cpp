#include "plugin/engines/qemu_plugin/trap_mask.h"

#include <signal.h>
#include <sys/syscall.h>

#include <optional>

#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {
namespace {

// In the ucontext at which a handler's stack pointer stands when it returns.
constexpr std::uint64_t kMaskInContext_bytes = 40 + 256;

// Whether the trap is blocked if the call fails, and if it succeeds.
struct Foreseen {
  bool as_before, as_asked;
};

thread_local std::optional<Foreseen> t_foreseen;
thread_local std::optional<bool> t_settled;

bool blocks_now() {
  sigset_t mask;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &mask) != 0 || ::sigismember(&mask, SIGTRAP) != 0;
}

// Nothing when it cannot be read.
std::optional<bool> names_trap(std::uint64_t set) {
  std::uint64_t named = 0;
  if (set == 0 || !read_guest(set, &named, sizeof named)) return std::nullopt;
  return (named & kTrapInMask) != 0;
}

bool blocks_behind(const SyscallArguments& arguments, bool before) {
  auto [how, set, old, size_bytes, unused, unused_too] = arguments;
  auto named = names_trap(set);
  if (!named) return before;
  if (how == SIG_SETMASK) return *named;
  return *named ? how == SIG_BLOCK : before;
}

}  // namespace

void foresee_trap_mask(std::uint32_t cpu, std::int64_t number, const SyscallArguments& arguments) {
  const bool before = blocks_now();
  t_foreseen = {before, before};
  if (number == SYS_rt_sigprocmask) t_foreseen->as_asked = blocks_behind(arguments, before);
  const std::uint64_t* registers = g_recorder.vcpu(cpu).registers;
  if (number == SYS_rt_sigreturn && registers != nullptr) {
    const bool then = names_trap(registers[kRsp] + kMaskInContext_bytes).value_or(before);
    t_foreseen = {then, then};
  }
}

void settle_trap_mask(bool succeeded) {
  if (t_foreseen) t_settled = succeeded ? t_foreseen->as_asked : t_foreseen->as_before;
  t_foreseen.reset();
}

void forget_trap_mask() { t_settled.reset(); }

// Elsewhere our thread has the program's mask.
bool is_trap_blocked() { return t_settled ? *t_settled : blocks_now(); }

}  // namespace tailtrace
