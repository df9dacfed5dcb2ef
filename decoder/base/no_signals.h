// NoSignals: threads that are started meanwhile are given no signals. These are for the threads of
// whoever uses us: a debugger that waits for one would never hear of it.
//
// Threading: of the thread that makes it.
#pragma once

#include <signal.h>

namespace tailtrace {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tailtrace
