#include "plugin/server/below/terminal_loan.h"

#include <signal.h>
#include <unistd.h>

namespace tailtrace {
namespace {

void set_foreground(pid_t group) {
  // From the background this raises SIGTTOU, whose default is to stop us.
  auto* old = ::signal(SIGTTOU, SIG_IGN);
  ::tcsetpgrp(STDERR_FILENO, group);
  ::signal(SIGTTOU, old);
}

}  // namespace

void TerminalLoan::lend_to(pid_t group) {
  pid_t owner = ::tcgetpgrp(STDERR_FILENO);
  if (owner < 0 || (owner_ < 0 && owner != ::getpgrp())) return;
  if (owner_ < 0) owner_ = owner;
  set_foreground(group);
}

void TerminalLoan::end() {
  if (owner_ < 0) return;
  set_foreground(owner_);
  owner_ = -1;
}

}  // namespace tailtrace
