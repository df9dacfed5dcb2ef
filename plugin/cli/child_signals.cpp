#include "plugin/cli/child_signals.h"

#include <cerrno>

namespace tailtrace {
namespace {

volatile pid_t receiver = 0;

void pass_on(int signal) {
  const int error = errno;
  ::kill(receiver, signal);
  errno = error;
}

}  // namespace

PassSignalsOn::PassSignalsOn(pid_t child) {
  receiver = child;
  struct sigaction passing {};
  passing.sa_handler = pass_on;
  passing.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &passing, nullptr);
  }
}

PassSignalsOn::~PassSignalsOn() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace tailtrace
