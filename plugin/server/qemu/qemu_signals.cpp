// The signals of a program under qemu: which it gets without the debugger being told, and what is
// known of one that it stops for.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

// The recorder passes them on at once (engines/qemu_plugin/unheard.h), but for what it cannot know
// to be only that. Should it not be told, they all come here.
void QemuInferior::pass_signals(const rsp::SignalSet& wanted) {
  passed_ = wanted;
  if (wanted.any()) usually_passed_ = wanted;
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

// The thread that stopped was not to run: GDB, which has another one step alone over a breakpoint,
// does not survive to be told of it. Nor does it have signals passed then. The program gets those
// that are usually passed, and the others when all threads run again, as far as an instruction does
// not raise them once more. False: it is no signal of the program's.
bool QemuInferior::keep_from_lone_step(std::uint8_t signal) {
  if (signal == kProtocolSigTrap) return false;
  if (is_fault(system_signal(signal))) {
    go_on();
  } else if (usually_passed_.test(signal)) {
    deliver(signal);
  } else {
    held_back_.push_back({stopped_.tid, system_signal(signal), signal_info_});
    go_on();
  }
  return true;
}

// With what came along, as far as the kernel lets us say so (rt_sigqueueinfo(2)).
void QemuInferior::send_held_back() {
  for (auto& [tid, signal, info] : held_back_) {
    const bool is_whole = info.size() == sizeof(siginfo_t);
    if (!is_whole || ::syscall(SYS_rt_tgsigqueueinfo, pid(), tid, signal, info.data()) != 0)
      ::syscall(SYS_tgkill, pid(), tid, signal);
  }
  held_back_.clear();
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

}  // namespace tailtrace
