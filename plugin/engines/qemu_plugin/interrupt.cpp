#include "plugin/engines/qemu_plugin/interrupt.h"

#include <signal.h>

namespace tailtrace {

void let_interrupted_reads_go_on() {
  struct sigaction action;
  if (::sigaction(SIGINT, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) == 0) return;
  action.sa_flags |= SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace tailtrace
