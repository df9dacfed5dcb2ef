// SharedTerminal: the terminal that a debugger and the program it debugs take turns at, as they do
// when the debugger holds the program by itself: the program has it while it runs, so that it can
// be typed to and Ctrl-C reaches it; the debugger has it while the program is stopped. Each finds
// the terminal's modes as it left them.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace tailtrace {

class SharedTerminal {
 public:
  // `fd` is a terminal that the debugger has now; with -1 nothing is shared and all this does
  // nothing. The descriptor stays the caller's.
  explicit SharedTerminal(int fd);
  ~SharedTerminal() { take_back(); }
  SharedTerminal(const SharedTerminal&) = delete;
  SharedTerminal& operator=(const SharedTerminal&) = delete;

  // The process is about to run. Nothing happens if it has it already or shares the debugger's
  // process group.
  void give_to(pid_t program);
  // It has stopped, or ended.
  void take_back();

 private:
  void hand_over(pid_t group, std::optional<termios>& left, const std::optional<termios>& found);

  int fd_;
  pid_t debugger_group_ = -1;
  bool given_ = false;
  std::optional<termios> debugger_modes_, program_modes_;
};

}  // namespace tailtrace
