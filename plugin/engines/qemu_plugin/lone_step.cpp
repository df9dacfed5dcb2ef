#include "plugin/engines/qemu_plugin/lone_step.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {
namespace {

constinit std::atomic<std::int32_t> g_lone_tid{0};  // 0: none

}  // namespace

void renew_lone_step() { g_lone_tid.store(g_recorder.blocks.header().stepped.lone_tid); }

// It may have ended in its step; and a debugger that lets go waits for none.
bool does_another_step_alone() {
  const std::int32_t tid = g_lone_tid.load();
  return tid != 0 && tid != ::gettid() && g_recorder.blocks.header().letting_go.is_on == 0 &&
         ::tgkill(::getpid(), tid, 0) == 0;
}

bool end_lone_step() {
  std::int32_t own = ::gettid();
  return g_lone_tid.compare_exchange_strong(own, 0);
}

void forget_lone_step() { g_lone_tid.store(0); }

}  // namespace tailtrace
