// TerminalLoan: gives the terminal that the server was started from to the program it serves, as
// gdbserver does: the program can be typed to, and Ctrl-C reaches it. It comes back at the end.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>

namespace tailtrace {

class TerminalLoan {
 public:
  TerminalLoan() = default;
  ~TerminalLoan() { end(); }
  TerminalLoan(const TerminalLoan&) = delete;
  TerminalLoan& operator=(const TerminalLoan&) = delete;

  // Lends the terminal at stderr, if there is one and we have it, to a process group.
  void lend_to(pid_t group);
  // Takes it back from whoever got it.
  void end();

 private:
  pid_t owner_ = -1;  // before it was lent; -1: it is not
};

}  // namespace tailtrace
