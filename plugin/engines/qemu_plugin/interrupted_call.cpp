#include "plugin/engines/qemu_plugin/interrupted_call.h"

#include <sys/syscall.h>

#include <cerrno>

#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kSyscallSize_bytes = 2;

// The one that this thread has left so last; 0: none.
struct InterruptedCall {
  std::uint64_t next = 0, stack = 0, number = 0;
};
constinit thread_local InterruptedCall t_interrupted_call;

// Those that wait no more behind any handler. qemu makes others again by itself.
bool waits_on(std::int64_t number) {
  switch (number) {
    case SYS_poll:
    case SYS_select:
    case SYS_pause:
    case SYS_nanosleep:
    case SYS_rt_sigsuspend:
    case SYS_futex:
    case SYS_clock_nanosleep:
    case SYS_pselect6:
    case SYS_ppoll:
      return true;
    default:
      return false;
  }
}

std::uint64_t* own_registers() {
  return t_cpu < 0 ? nullptr : g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).registers;
}

// A function that the debugger has it call in between leads away, and back.
bool stands_behind(const InterruptedCall& call, const std::uint64_t* registers) {
  return call.next != 0 && registers[kRip] == call.next && registers[kRsp] == call.stack;
}

}  // namespace

void note_call_end(std::uint32_t cpu, std::int64_t number, std::int64_t result) {
  const std::uint64_t* registers = g_recorder.vcpu(cpu).registers;
  if (registers == nullptr) return;
  if (result == -EINTR && waits_on(number))
    t_interrupted_call = {registers[kRip], registers[kRsp], static_cast<std::uint64_t>(number)};
  else if (stands_behind(t_interrupted_call, registers))
    t_interrupted_call = {};
}

void settle_interrupted_call(bool has_signal) {
  std::uint64_t* registers = own_registers();
  if (registers == nullptr || !stands_behind(t_interrupted_call, registers)) return;
  const std::uint64_t number = t_interrupted_call.number;
  t_interrupted_call = {};
  if (has_signal || registers[kRax] != static_cast<std::uint64_t>(-EINTR)) return;
  registers[kRax] = number;
  registers[kRip] -= kSyscallSize_bytes;
}

}  // namespace tailtrace
