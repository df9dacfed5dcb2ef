// What signals do while this process waits for a program, or a debugger, that it has started.
//
// Threading: one object of each at a time in a process.
#pragma once

#include <sys/types.h>

#include <array>

#include "plugin/server/below/quiet_signal.h"

namespace tailtrace {

// What is typed at the terminal is for the program, as a shell does it.
struct LeaveSignalsToProgram {
  QuietSignal interrupt{SIGINT};
  QuietSignal quit{SIGQUIT};
};

// SIGTERM and SIGHUP are sent on to a child: it ends as it would without us, and what is to be done
// behind its end is done. Who sends them to the whole process group sends the child two. Those that
// are ignored stay so.
class PassSignalsOn {
 public:
  explicit PassSignalsOn(pid_t child);
  // They do again what they did.
  ~PassSignalsOn();
  PassSignalsOn(const PassSignalsOn&) = delete;
  PassSignalsOn& operator=(const PassSignalsOn&) = delete;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace tailtrace
