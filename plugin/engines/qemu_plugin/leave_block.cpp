#include "plugin/engines/qemu_plugin/leave_block.h"

#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include <cstdint>
#include <utility>

#include "plugin/engines/qemu_plugin/kept_handler.h"
#include "plugin/engines/qemu_plugin/signal_info.h"
#include "plugin/engines/qemu_plugin/unheard.h"

namespace tailtrace {
namespace {

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* last) {
  *static_cast<std::uint64_t*>(last) = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// Where in its translated code this thread is: where unwinding ends, for that code has no tables.
std::uint64_t translated_pc() {
  std::uint64_t last = 0;
  _Unwind_Backtrace(take_frame, &last);
  return last;
}

// GDB's number of SIGBUS.
constexpr int kProtocolSigBus = 10;

thread_local bool t_bus_waits = false;

// What the program's mask says of SIGBUS is hidden from our thread; but who blocks that blocks its
// like as well.
bool blocks_faults() {
  sigset_t mask;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &mask) != 0 || ::sigismember(&mask, SIGILL) != 0 ||
         ::sigismember(&mask, SIGFPE) != 0;
}

}  // namespace

void leave_block(bool again) {
  const HostHandler handle = qemu_signal_handler();
  if (handle == nullptr) return;
  siginfo_t info{};
  info.si_signo = SIGBUS;
  const bool must_force = again || blocks_faults();
  if (must_force) keep_handler();
  info.si_code = must_force ? BUS_ADRALN : BUS_ADRERR;
  if (again && !std::exchange(t_bus_waits, true)) count_late_bus(1);
  ucontext_t context{};
  // Within the call, not behind it: there the next instruction's code may begin.
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(translated_pc() - 1);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &context.uc_sigmask);
  handle(SIGBUS, &info, &context);
}

bool is_late_bus(int signal) {
  if (signal != kProtocolSigBus || !std::exchange(t_bus_waits, false)) return false;
  count_late_bus(-1);
  return true;
}

}  // namespace tailtrace
