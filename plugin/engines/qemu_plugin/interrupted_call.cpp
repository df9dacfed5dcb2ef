#include "plugin/engines/qemu_plugin/interrupted_call.h"

#include <sys/syscall.h>

#include <cerrno>
#include <utility>

#include "plugin/engines/qemu_plugin/call_trap.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kSyscallSize_bytes = 2;

struct Call {
  std::uint64_t next = 0, stack = 0, number = 0;
  std::int64_t result = -EINTR;
};
// The one that this thread makes, and the one that it has left so last; 0: none.
constinit thread_local Call t_call, t_interrupted_call;

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

// Whether it comes back to where it was made, unless a debugger wants otherwise.
bool comes_back(std::int64_t number) {
  return number != SYS_rt_sigreturn && number != SYS_execve && number != SYS_execveat;
}

std::uint64_t* own_registers() {
  return t_cpu < 0 ? nullptr : g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).registers;
}

// A function that the debugger has it call in between leads away, and back.
bool stands_behind(const Call& call, const std::uint64_t* registers) {
  return call.next != 0 && registers[kRip] == call.next && registers[kRsp] == call.stack;
}

}  // namespace

void note_call_begin(std::uint32_t cpu, std::int64_t number) {
  const std::uint64_t* registers = g_recorder.vcpu(cpu).registers;
  t_call = {};
  if (registers != nullptr)
    t_call = {registers[kRip], registers[kRsp], static_cast<std::uint64_t>(number)};
}

void note_call_end(std::uint32_t cpu, std::int64_t number, std::int64_t result) {
  std::uint64_t* registers = g_recorder.vcpu(cpu).registers;
  if (registers == nullptr) return;
  if (t_call.next != 0 && registers[kRip] != t_call.next && comes_back(number)) {
    t_interrupted_call = t_call;
    if (result == kToBeMadeAgain)
      registers[kRip] += kSyscallSize_bytes;  // which qemu takes off
    else
      t_interrupted_call.result = result;
  } else if (result == -EINTR && waits_on(number))
    t_interrupted_call = t_call;
  else if (stands_behind(t_interrupted_call, registers))
    t_interrupted_call = {};
}

void settle_interrupted_call(bool has_signal) {
  std::uint64_t* registers = own_registers();
  if (registers == nullptr || !stands_behind(t_interrupted_call, registers)) return;
  const Call call = std::exchange(t_interrupted_call, {});
  const auto result = static_cast<std::uint64_t>(call.result);
  // As a debugger saw it while the call was made, and puts it back.
  if (registers[kRax] == call.number) registers[kRax] = result;
  if (has_signal || registers[kRax] != result || call.result != -EINTR) return;
  registers[kRax] = call.number;
  registers[kRip] -= kSyscallSize_bytes;
}

}  // namespace tailtrace
