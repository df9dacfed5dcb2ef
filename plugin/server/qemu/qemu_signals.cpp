// The signals of a program under qemu: which it gets without the debugger being told, and what is
// known of one that it stops for.
#include <signal.h>

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

}  // namespace tailtrace
