#include "plugin/server/qemu/child_changes.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tailtrace {

ChildChanges::ChildChanges() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

ChildChanges::~ChildChanges() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

void ChildChanges::forget() const {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
  }
}

}  // namespace tailtrace
