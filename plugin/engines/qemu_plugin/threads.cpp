#include "plugin/engines/qemu_plugin/threads.h"

#include <unistd.h>

#include <algorithm>

#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/process.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/stub_gate.h"
#include "plugin/engines/qemu_plugin/unheard.h"

namespace tailtrace {

Recorder g_recorder;
thread_local int t_cpu = -1;

namespace {

thread_local std::int64_t t_made_cpu = -1;

// The thread's first instruction is the one after its parent's system call.
void expect_thread_at_parents_next() {
  Flow parent(static_cast<std::uint32_t>(t_cpu));
  g_recorder.blocks.care_for(parent.open_info().end(), kCareThread);
}

}  // namespace

void make_thread(std::uint32_t cpu) {
  std::lock_guard lock(g_recorder.lock);
  bool is_main = t_cpu < 0 && g_recorder.vcpu_count == 0;
  ThreadId thread{::getpid(), is_main ? ::gettid() : 0};
  bool recorded = g_recorder.rings.open(cpu, thread);
  if (is_main) show_process(recorded);
  if (!recorded) g_recorder.blocks.header().lost_threads.fetch_add(1);
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  vcpu.registers = nullptr;
  vcpu.own_info = {};
  vcpu.executes = false;
  for (siginfo_t& info : vcpu.infos) info.si_signo = 0;
  vcpu.was_no_address = false;
  vcpu.room = take_thread_room();
  vcpu.is_running = true;
  g_recorder.vcpu_count =
      std::max(g_recorder.vcpu_count, std::min(cpu, g_recorder.rings.limit() - 1) + 1);
  if (is_main) {
    t_cpu = static_cast<int>(cpu);
  } else {
    t_made_cpu = cpu;
    if (t_cpu >= 0) expect_thread_at_parents_next();
  }
}

void begin_thread(std::uint32_t cpu) {
  t_cpu = static_cast<int>(cpu);
  RingHeader& ring = *ring_of(cpu);
  tailtrace_ring = &ring;
  ring.time = __builtin_ia32_rdtsc();
  ring.tid.store(::gettid(), std::memory_order_relaxed);
  ring.state.store(RingState::kRunning, std::memory_order_release);
}

bool has_begun() { return tailtrace_ring != &g_unread_ring.header; }

void name_made_thread(std::int32_t tid) {
  if (t_made_cpu < 0) return;
  std::int32_t unknown = 0;
  ring_of(static_cast<std::uint32_t>(t_made_cpu))->tid.compare_exchange_strong(unknown, tid);
  t_made_cpu = -1;
}

void end_thread(std::uint32_t cpu) {
  forget_step();
  end_at_stub_gate();
  std::lock_guard lock(g_recorder.lock);
  g_recorder.vcpu(cpu).is_running = false;
  if (g_recorder.rings.close(cpu, RingState::kThreadExited))
    g_recorder.blocks.header().lost_rings.fetch_add(1);
}

// Other threads are stopped somewhere: their rings stay as they are.
void end_process(RingState state) {
  std::lock_guard lock(g_recorder.lock);
  if (t_cpu >= 0) g_recorder.rings.close(static_cast<std::uint32_t>(t_cpu), state);
}

}  // namespace tailtrace
