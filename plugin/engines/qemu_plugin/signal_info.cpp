#include "plugin/engines/qemu_plugin/signal_info.h"

#include <dlfcn.h>

#include <atomic>
#include <utility>

#include "plugin/engines/qemu/guest_signal.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/imports.h"
#include "plugin/engines/qemu_plugin/spare_memory.h"

namespace tailtrace {
namespace {

constinit std::atomic<HostHandler> g_handler{nullptr};

bool is_fault_of_memory(const siginfo_t& info) {
  return info.si_code > 0 && (info.si_signo == SIGSEGV || info.si_signo == SIGBUS);
}

// The kept one of this number, else an empty place, else the place of the one that was kept first.
siginfo_t& place_for(Vcpu& vcpu, int signal) {
  for (siginfo_t& kept : vcpu.infos)
    if (kept.si_signo == signal) return kept;
  for (siginfo_t& kept : vcpu.infos)
    if (kept.si_signo == 0) return kept;
  return vcpu.infos[vcpu.oldest_info++ % kKeptInfos];
}

// A fault that is the program's business leaves qemu's handler otherwise.
void on_signal(int signal, siginfo_t* info, void* context) {
  give_back_spare_memory();  // qemu's stub needs some to tell of it
  siginfo_t* kept = nullptr;
  if (t_cpu >= 0) {
    const int number = guest_signal(signal);
    Vcpu& vcpu = g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu));
    kept = &place_for(vcpu, number);
    *kept = *info;
    kept->si_signo = number;
    if (signal == SIGSEGV) vcpu.was_no_address = info->si_code == SI_KERNEL;
    if (is_fault_of_memory(*info) && info->si_code != SI_KERNEL)
      kept->si_addr = static_cast<char*>(info->si_addr) - g_recorder.guest_base;
  }
  g_handler.load()(signal, info, context);
  if (!is_fault_of_memory(*info)) return;
  if (kept != nullptr) kept->si_signo = 0;
  keep_spare_memory();
}

// sigaction(2), as qemu calls it. Its own handler is the only one that asks for a siginfo; it asks
// for that with no handler, too (do_sigaction in linux-user/signal.c).
int set_action(int signal, const struct sigaction* wanted, struct sigaction* before) {
  if (wanted == nullptr || (wanted->sa_flags & SA_SIGINFO) == 0 || wanted->sa_handler == SIG_IGN ||
      wanted->sa_handler == SIG_DFL)
    return ::sigaction(signal, wanted, before);
  g_handler.store(wanted->sa_sigaction);
  struct sigaction ours = *wanted;
  ours.sa_sigaction = on_signal;
  return ::sigaction(signal, &ours, before);
}

// As qemu's cpu_loop() has it (linux-user/i386/cpu_loop.c in 7.2).
std::optional<siginfo_t> info_by_place(int signal, std::uint32_t cpu, std::uint64_t pc) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_addr = reinterpret_cast<void*>(pc);
  std::uint8_t code = 0;
  switch (signal) {
    case SIGFPE:
      info.si_code = FPE_INTDIV;
      return info;
    case SIGILL:
      info.si_code = ILL_ILLOPN;
      return info;
    case SIGSEGV:
      info.si_code = read_guest(pc, &code, 1) ? SEGV_ACCERR : SEGV_MAPERR;
      // One that programs may not execute, rather than one where nothing may be executed.
      if (Flow(cpu).open_info().index_of(pc) >= 0) {
        info.si_code = SI_KERNEL;
        info.si_addr = nullptr;
      }
      return info;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool keep_signal_infos() {
  return replace_import("sigaction", reinterpret_cast<void*>(&set_action));
}

void mend_signal_info(Vcpu& vcpu, const SignalFrame& frame) {
  if (frame.signal != SIGSEGV || !std::exchange(vcpu.was_no_address, false)) return;
  auto* info = reinterpret_cast<siginfo_t*>(frame.info + g_recorder.guest_base);
  info->si_code = SI_KERNEL;
  info->si_addr = nullptr;
}

HostHandler qemu_signal_handler() { return g_handler.load(); }

std::optional<siginfo_t> take_signal_info(int signal) {
  if (t_cpu < 0) return std::nullopt;
  const auto cpu = static_cast<std::uint32_t>(t_cpu);
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  for (siginfo_t& kept : vcpu.infos) {
    if (kept.si_signo != signal || signal == 0) continue;
    const siginfo_t info = kept;
    kept.si_signo = 0;
    return info;
  }
  if (vcpu.registers == nullptr) return std::nullopt;
  return info_by_place(signal, cpu, vcpu.registers[kRip]);
}

}  // namespace tailtrace
