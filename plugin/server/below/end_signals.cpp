#include "plugin/server/below/end_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tailtrace {

EndSignals::EndSignals(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : signals) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

EndSignals::~EndSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

int EndSignals::take() {
  signalfd_siginfo info{};
  if (taken_ == 0 && ::read(fd_.get(), &info, sizeof info) == sizeof info)
    taken_ = static_cast<int>(info.ssi_signo);
  return taken_;
}

bool EndSignals::has_come() const {
  pollfd polled{fd_.get(), POLLIN, 0};
  return taken_ != 0 || ::poll(&polled, 1, 0) > 0;
}

Result<void> EndSignals::wait(std::vector<pollfd>& polled, int timeout_ms) const {
  polled.push_back({fd_.get(), POLLIN, 0});
  int ready = ::poll(polled.data(), polled.size(), timeout_ms);
  int error = errno;
  bool ends = taken_ != 0 || (ready > 0 && polled.back().revents != 0);
  polled.pop_back();
  if (ends) return fail(ErrorCode::kGone, "nobody waits any more", "a signal ends the server");
  if (ready < 0 && error != EINTR) return fail(system_error("cannot wait", error));
  return {};
}

}  // namespace tailtrace
