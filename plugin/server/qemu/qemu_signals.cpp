// The signals of a program under qemu: which it gets without the debugger being told, and what is
// known of one that it stops for.
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

// The recorder passes them on at once (engines/qemu_plugin/unheard.h), but for what it cannot know
// to be only that. Should it not be told, they all come here.
void QemuInferior::pass_signals(const rsp::SignalSet& wanted) {
  passed_ = wanted;
  PassedNumbers passed{};
  for (std::size_t signal = 0; signal < wanted.size(); ++signal)
    if (wanted.test(signal) || is_of_threads(system_signal(static_cast<std::uint8_t>(signal))))
      passed.words[signal / 64] |= 1ull << signal % 64;
  (void)engine_.set_passed(passed).has_value();
}

// By the recorder's word a fault may be a breakpoint's.
bool QemuInferior::is_passed(std::uint8_t signal) const {
  const int number = system_signal(signal);
  if (number == SIGILL || number == SIGSEGV || signal == kProtocolSigTrap) return false;
  return passed_.test(signal) || is_of_threads(number);
}

// As the recorder says it (engines/qemu_plugin/signal_info.h): `siginfo:BYTES;`.
void QemuInferior::take_signal_info(std::string& reply) {
  static constexpr std::string_view kWord = "siginfo:";
  signal_info_.clear();
  const std::size_t at = reply.find(kWord);
  if (at == std::string::npos) return;
  const std::size_t begin = at + kWord.size(), end = reply.find(';', begin);
  if (end == std::string::npos) return;
  auto bytes = from_hex(std::string_view(reply).substr(begin, end - begin));
  if (bytes) signal_info_ = std::move(*bytes);
  reply.erase(at, end + 1 - at);
}

// A signal that stops the whole process stops the stub in it, too. So it goes on at once, and stops
// for the debugger, which is told that it was for that signal.
void QemuInferior::take_halt() {
  siginfo_t info{};
  const auto process = static_cast<id_t>(pid());
  if (::waitid(P_PID, process, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return;
  const std::uint8_t signal = protocol_signal(info.si_status);
  if (!passed_.test(signal)) {
    halted_by_ = signal;
    untold_halt_ = info.si_status;
    interrupt();
  }
  ::kill(pid(), SIGCONT);
}

// The same while it stands, and the stub is to answer. When it runs again it is stopped again.
void QemuInferior::wake_stub() {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid()), &info, WSTOPPED | WNOHANG) != 0) return;
  if (info.si_pid == 0) return;
  untold_halt_ = info.si_status;
  ::kill(pid(), SIGCONT);
}

void QemuInferior::tell_interrupt(Event& event) {
  const std::uint8_t signal = halted_by_ != 0 ? halted_by_ : kProtocolSigInt;
  event.reply.replace(0, 3, fmt::format("T{:02x}", signal));
  if (halted_by_ == 0) return;
  untold_halt_ = 0;
  event.was_interrupted = false;
  signal_info_.clear();
}

}  // namespace tailtrace
