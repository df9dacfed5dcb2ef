// The signals that a program under qemu gets without the debugger being told.
#include <signal.h>

#include "plugin/server/below/signals.h"
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

}  // namespace tailtrace
