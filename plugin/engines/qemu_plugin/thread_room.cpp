#include "plugin/engines/qemu_plugin/thread_room.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kTrapBit = 1ull << (SIGTRAP - 1);  // of the kernel's sigset_t

// qemu blocks all signals while it changes a mask, and puts the program's back behind us: what that
// will be is known from the program's request.
thread_local bool t_unblocks_trap = false;

std::atomic<std::uint64_t>& thread_room() { return g_recorder.blocks.header().thread_room; }

// Elsewhere our thread has the program's mask.
bool is_trap_blocked() {
  sigset_t mask;
  return ::pthread_sigmask(SIG_BLOCK, nullptr, &mask) != 0 || ::sigismember(&mask, SIGTRAP) != 0;
}

}  // namespace

ThreadRoom take_thread_room() {
  std::uint64_t left = thread_room().load();
  while (left != kNoThreadLimit && left != 0 &&
         !thread_room().compare_exchange_weak(left, left - 1)) {
  }
  return left == 0 ? ThreadRoom::kLacks : ThreadRoom::kHeld;
}

void before_signal_mask(std::uint32_t cpu, const SyscallArguments& arguments) {
  auto [how, set, old, size_bytes, unused, unused_too] = arguments;
  std::uint64_t named = 0;
  if (g_recorder.vcpu(cpu).room != ThreadRoom::kLacks || set == 0 ||
      !read_guest(set, &named, sizeof named))
    return;
  bool is_named = (named & kTrapBit) != 0;
  t_unblocks_trap = (how == SIG_SETMASK && !is_named) || (how == SIG_UNBLOCK && is_named);
}

void after_signal_mask(bool was_set) { t_unblocks_trap &= was_set; }

void tell_of_lacking_room(std::uint32_t cpu) {
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  if (vcpu.room != ThreadRoom::kLacks) return;
  bool unblocks = std::exchange(t_unblocks_trap, false);
  if (thread_room().load() == kNoThreadLimit || (!unblocks && is_trap_blocked())) return;
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
