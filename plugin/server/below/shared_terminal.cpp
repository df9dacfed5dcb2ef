#include "plugin/server/below/shared_terminal.h"

#include <signal.h>
#include <unistd.h>

namespace tailtrace {
namespace {

// Changing a terminal from the background raises SIGTTOU unless it is blocked.
class BlockTerminalOutputSignal {
 public:
  BlockTerminalOutputSignal() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockTerminalOutputSignal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

SharedTerminal::SharedTerminal(int fd) : fd_(fd) {
  if (fd_ >= 0) debugger_group_ = ::tcgetpgrp(fd_);
  if (debugger_group_ < 0) fd_ = -1;
}

void SharedTerminal::give_to(pid_t program) {
  if (fd_ < 0 || given_) return;
  pid_t group = ::getpgid(program);
  if (group < 0 || group == debugger_group_) return;
  hand_over(group, debugger_modes_, program_modes_);
  given_ = true;
}

void SharedTerminal::take_back() {
  if (fd_ < 0 || !given_) return;
  hand_over(debugger_group_, program_modes_, debugger_modes_);
  given_ = false;
}

void SharedTerminal::hand_over(pid_t group, std::optional<termios>& left,
                               const std::optional<termios>& found) {
  BlockTerminalOutputSignal block;
  termios modes;
  if (::tcgetattr(fd_, &modes) == 0) left = modes;
  // What is typed ahead stays, whoever it was meant for: no flush.
  if (found) ::tcsetattr(fd_, TCSADRAIN, &*found);
  ::tcsetpgrp(fd_, group);
}

}  // namespace tailtrace
