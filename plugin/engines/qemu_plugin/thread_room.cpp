#include "plugin/engines/qemu_plugin/thread_room.h"

#include <signal.h>
#include <unistd.h>

#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/trap_mask.h"

namespace tailtrace {
namespace {

std::atomic<std::uint64_t>& thread_room() { return g_recorder.blocks.header().thread_room; }

}  // namespace

ThreadRoom take_thread_room() {
  std::uint64_t left = thread_room().load();
  while (left != kNoThreadLimit && left != 0 &&
         !thread_room().compare_exchange_weak(left, left - 1)) {
  }
  return left == 0 ? ThreadRoom::kLacks : ThreadRoom::kHeld;
}

void tell_of_lacking_room(std::uint32_t cpu) {
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  if (vcpu.room != ThreadRoom::kLacks) return;
  if (thread_room().load() == kNoThreadLimit || is_trap_blocked()) return;
  vcpu.room = ThreadRoom::kRaised;
  ::tgkill(::getpid(), ::gettid(), SIGTRAP);
}

bool is_told_of_room(int signal) {
  if (t_cpu < 0 || signal != SIGTRAP) return false;
  Vcpu& vcpu = g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu));
  if (vcpu.room != ThreadRoom::kRaised) return false;
  vcpu.room = ThreadRoom::kTold;
  return true;
}

}  // namespace tailtrace
