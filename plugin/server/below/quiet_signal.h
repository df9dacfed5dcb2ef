// QuietSignal: a signal that does nothing to this process, but to programs that it starts does what
// it did: it is caught, where ignoring it would be inherited.
//
// Threading: one object at a time for a signal.
#pragma once

#include <signal.h>

namespace tailtrace {

class QuietSignal {
 public:
  // One that is ignored already stays so, in this process and in programs.
  explicit QuietSignal(int signal) : signal_(signal) {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};
    quiet.sa_flags = SA_RESTART;
    ::sigaction(signal_, nullptr, &before_);
    if (before_.sa_handler != SIG_IGN) ::sigaction(signal_, &quiet, nullptr);
  }
  // It does what it did before.
  ~QuietSignal() { ::sigaction(signal_, &before_, nullptr); }
  QuietSignal(const QuietSignal&) = delete;
  QuietSignal& operator=(const QuietSignal&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

}  // namespace tailtrace
