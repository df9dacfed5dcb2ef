#include "plugin/engines/protocol_signals.h"

#include <signal.h>

namespace tailtrace {

int system_signal(std::uint8_t protocol_signal) {
  // Up to 15 the two agree except for these; the numbers are the protocol's (GDB manual, appendix
  // "Remote Protocol", signals are those of GDB's own list).
  switch (protocol_signal) {
    case 7:  // SIGEMT does not exist here
      return 0;
    case 10:
      return SIGBUS;
    case 12:
      return SIGSYS;
    case 16:
      return SIGURG;
    case 17:
      return SIGSTOP;
    case 18:
      return SIGTSTP;
    case 19:
      return SIGCONT;
    case 20:
      return SIGCHLD;
    case 21:
      return SIGTTIN;
    case 22:
      return SIGTTOU;
    case 23:
      return SIGIO;
    case 24:
      return SIGXCPU;
    case 25:
      return SIGXFSZ;
    case 26:
      return SIGVTALRM;
    case 27:
      return SIGPROF;
    case 28:
      return SIGWINCH;
    case 30:
      return SIGUSR1;
    case 31:
      return SIGUSR2;
    case 32:
      return SIGPWR;
    case 77:
      return 32;
    default:
      break;
  }
  if (protocol_signal >= 45 && protocol_signal <= 75) return protocol_signal - 45 + 33;
  if (protocol_signal == 78) return 64;
  return protocol_signal < 16 ? protocol_signal : 0;
}

std::uint8_t protocol_signal(int number) {
  for (int candidate = 1; candidate < 128; ++candidate)
    if (number > 0 && system_signal(static_cast<std::uint8_t>(candidate)) == number)
      return static_cast<std::uint8_t>(candidate);
  return 0;
}

bool is_fault(int signal) {
  return signal == SIGILL || signal == SIGFPE || signal == SIGBUS || signal == SIGSEGV;
}

}  // namespace tailtrace
