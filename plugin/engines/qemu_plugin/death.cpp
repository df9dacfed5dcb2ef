#include "plugin/engines/qemu_plugin/death.h"

#include <unistd.h>

#include <csignal>

#include "plugin/engines/qemu/guest_signal.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/imports.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {
namespace {

// qemu has brought the guest's registers to where the signal came, and sends itself the signal to
// end as the program would have.
int send_signal(pid_t process, int signal) {
  if (process == ::getpid() && t_cpu >= 0) {
    const auto cpu = static_cast<std::uint32_t>(t_cpu);
    const std::uint64_t* registers = g_recorder.vcpu(cpu).registers;
    Flow flow(cpu);
    flow.take_time();
    flow.ring().ended_by.store(static_cast<std::uint32_t>(guest_signal(signal)),
                               std::memory_order_relaxed);
    if (registers != nullptr)
      flow.interrupt_at(registers[kRip], is_of_instructions(static_cast<std::uint64_t>(signal)));
  }
  return ::kill(process, signal);
}

}  // namespace

void record_deaths() { replace_import("kill", reinterpret_cast<void*>(&send_signal)); }

}  // namespace tailtrace
