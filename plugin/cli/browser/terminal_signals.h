// Signals while a full-screen program has the terminal: those that end a program, or tell of
// another size, are held back and arrive where they are waited for; those of a crash put the
// terminal back first. Ctrl-Z is left to who draws the screen.
//
// Threading: the main thread; one at a time.
#pragma once

#include <csignal>
#include <string>

namespace tailtrace {

class TerminalSignals {
 public:
  // `restore` is written to the terminal when this program crashes; what the terminal is set to now
  // is what it is set to again. REQUIRES: before anyone changed that.
  explicit TerminalSignals(std::string restore);
  // What was held back arrives now, but Ctrl-C.
  ~TerminalSignals();
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  enum class Came : unsigned char { kInput, kHangup, kSignal };
  // Waits for input at the terminal, or a signal.
  Came wait();

  // The signals that came; asking forgets them, but `ending`.
  bool take_interrupt();
  bool take_resize();
  int ending() const;  // 0: none

 private:
  sigset_t held_, waiting_;
};

}  // namespace tailtrace
