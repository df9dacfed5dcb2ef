#include "plugin/recorder/recorder_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace tailtrace {

RecorderSignals::RecorderSignals(bool interrupt) : too_large_before_(::signal(SIGXFSZ, SIG_IGN)) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGUSR2, SIGCHLD, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  if (interrupt) ::sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

RecorderSignals::~RecorderSignals() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGXFSZ, too_large_before_);
}

std::optional<int> RecorderSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

int RecorderSignals::wait() {
  for (;;) {
    if (auto signal = take()) return *signal;
    pollfd polled{fd_.get(), POLLIN, 0};
    ::poll(&polled, 1, -1);
  }
}

}  // namespace tailtrace
