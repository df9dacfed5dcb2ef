#include "plugin/engines/qemu_plugin/syscalls.h"

#include <sys/syscall.h>

#include "plugin/engines/qemu_plugin/call_catch.h"
#include "plugin/engines/qemu_plugin/call_trap.h"
#include "plugin/engines/qemu_plugin/exec.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/interrupted_call.h"
#include "plugin/engines/qemu_plugin/maps_log.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"
#include "plugin/engines/qemu_plugin/stub_gate.h"
#include "plugin/engines/qemu_plugin/thread_room.h"
#include "plugin/engines/qemu_plugin/threads.h"
#include "plugin/engines/qemu_plugin/trap_mask.h"
#include "plugin/engines/qemu_plugin/watch.h"

namespace tailtrace {

void enter_syscall(std::uint32_t cpu, std::int64_t number, const SyscallArguments& arguments) {
  wait_at_stub_gate(cpu);
  note_call_begin(cpu, number);
  keep_maps(number, arguments);
  Flow flow(cpu);
  flow.take_time();
  flow.come_to_call();
  if (g_recorder.vcpu(cpu).room == ThreadRoom::kLacks || is_stepped())
    foresee_trap_mask(cpu, number, arguments);
  switch (number) {
    case SYS_rt_sigaction:
      learn_handler(arguments[0], arguments[1]);
      break;
    case SYS_rt_sigreturn:
      flow.rename_open(RecordKind::kSystemReturn);
      break;
    case SYS_execve:
    case SYS_execveat:
      follow_exec(number, arguments);
      break;
    default:
      break;
  }
}

void leave_syscall(std::uint32_t cpu, std::int64_t number, std::int64_t result) {
  Flow(cpu).take_time();
  keep_unmapped();
  keep_watched_memory();
  bool makes_threads = number == SYS_clone || number == SYS_clone3;
  if (number == SYS_execve || number == SYS_execveat) exec_failed();
  if (makes_threads && result > 0) name_made_thread(static_cast<std::int32_t>(result));
  settle_trap_mask(result == 0);
  pass_stub_gate(cpu, 0);
  tell_of_lacking_room(cpu);
  raise_call_trap(result);
  forget_trap_mask();
  forget_stop_at_call(result);
  note_call_end(cpu, number, result);
}

}  // namespace tailtrace
