#include "plugin/recorder/recorder_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tailtrace {

RecorderSignals::RecorderSignals(bool interrupt) : too_large_before_(::signal(SIGXFSZ, SIG_IGN)) {
  ::sigemptyset(&waited_for_);
  for (int signal : {SIGUSR2, SIGCHLD, SIGTERM, SIGHUP}) ::sigaddset(&waited_for_, signal);
  if (interrupt) ::sigaddset(&waited_for_, SIGINT);
  ::sigprocmask(SIG_BLOCK, &waited_for_, &before_);
  fd_ = UniqueFd(::signalfd(-1, &waited_for_, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Whoever asked for it to end twice wants it to say how it ended.
RecorderSignals::~RecorderSignals() {
  constexpr timespec kAtOnce{};
  while (::sigtimedwait(&waited_for_, nullptr, &kAtOnce) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGXFSZ, too_large_before_);
}

std::optional<int> RecorderSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

int RecorderSignals::wait() {
  for (;;)
    if (int signal = ::sigwaitinfo(&waited_for_, nullptr); signal > 0) return signal;
}

}  // namespace tailtrace
