#include "plugin/engines/qemu_plugin/call_trap.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"
#include "plugin/engines/qemu_plugin/trap_mask.h"

namespace tailtrace {
namespace {

thread_local bool t_call_trap_raised = false;

void raise_trap() {
  t_call_trap_raised = true;
  ::tgkill(::getpid(), ::gettid(), SIGTRAP);
}

// Of a signal without a handler the step is what it always is.
bool has_handler(std::int32_t signal) {
  std::lock_guard lock(g_recorder.lock);
  return signal > 0 && signal <= static_cast<std::int32_t>(kMaxSignal) &&
         g_recorder.with_trap[static_cast<std::size_t>(signal)];
}

}  // namespace

bool is_about_to_fork() {
  constexpr std::uint8_t kSyscall[] = {0x0f, 0x05};
  if (t_cpu < 0) return false;
  const std::uint64_t* registers = g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).registers;
  std::uint8_t code[sizeof kSyscall];
  if (registers == nullptr || !read_guest(registers[kRip], code, sizeof code) ||
      !std::equal(code, code + sizeof code, kSyscall))
    return false;
  const std::uint64_t number = registers[kRax];
  return number == SYS_fork || number == SYS_vfork || number == SYS_clone || number == SYS_clone3;
}

bool is_stepped() {
  const SteppedThreads& stepped = g_recorder.blocks.header().stepped;
  const std::size_t count = std::min<std::size_t>(stepped.count, kMaxSteppedThreads);
  if (count == 0) return false;
  return std::find(stepped.tids, stepped.tids + count, ::gettid()) != stepped.tids + count;
}

// Of the signal that interrupted a call the stub tells by itself.
void raise_call_trap(std::int64_t result) {
  if (result == kToBeMadeAgain || !is_stepped() || is_trap_blocked()) return;
  raise_trap();
}

void raise_handler_trap() {
  const SteppedThreads& stepped = g_recorder.blocks.header().stepped;
  if (stepped.tid_with_signal == ::gettid() && has_handler(stepped.signal)) raise_trap();
}

bool is_call_trap(int signal) {
  return signal == SIGTRAP && std::exchange(t_call_trap_raised, false);
}

}  // namespace tailtrace
