#include "plugin/cli/browser/terminal_signals.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tailtrace {
namespace {

constexpr std::array kEnds = {SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

volatile sig_atomic_t g_interrupt = 0, g_resize = 0, g_ending = 0;

// For a crash: in place, for nothing can be asked for then.
termios g_modes;
std::array<char, 256> g_restore;
std::size_t g_restore_bytes = 0;

void on_signal(int number) {
  if (number == SIGINT)
    g_interrupt = 1;
  else if (number == SIGWINCH)
    g_resize = 1;
  else
    g_ending = number;
}

void on_crash(int number) {
  [[maybe_unused]] ssize_t ignored = ::write(STDOUT_FILENO, g_restore.data(), g_restore_bytes);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &g_modes);
  ::raise(number);  // which ends the program: the handler was taken back before it was called
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

TerminalSignals::TerminalSignals(std::string restore) {
  ::tcgetattr(STDIN_FILENO, &g_modes);
  g_restore_bytes = std::min(restore.size(), g_restore.size());
  std::memcpy(g_restore.data(), restore.data(), g_restore_bytes);
  g_interrupt = 0;
  g_resize = 0;
  g_ending = 0;
  sigemptyset(&held_);
  for (int number : {SIGINT, SIGWINCH, SIGTSTP}) sigaddset(&held_, number);
  for (int number : kEnds) sigaddset(&held_, number);
  ::sigprocmask(SIG_BLOCK, &held_, &waiting_);
  for (int number : kEnds) handle(number, on_signal, 0);
  for (int number : {SIGINT, SIGWINCH}) handle(number, on_signal, 0);
  for (int number : kCrashes) handle(number, on_crash, static_cast<int>(SA_RESETHAND));
}

TerminalSignals::~TerminalSignals() {
  handle(SIGINT, SIG_IGN, 0);  // drops what is held back of it
  for (int number : {SIGINT, SIGWINCH}) handle(number, SIG_DFL, 0);
  for (int number : kEnds) handle(number, SIG_DFL, 0);
  for (int number : kCrashes) handle(number, SIG_DFL, 0);
  ::sigprocmask(SIG_SETMASK, &waiting_, nullptr);
}

TerminalSignals::Came TerminalSignals::wait() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::ppoll(&input, 1, nullptr, &waiting_) < 0) return Came::kSignal;
  return (input.revents & POLLIN) != 0 ? Came::kInput : Came::kHangup;
}

bool TerminalSignals::take_interrupt() {
  // Lets in what is held back.
  timespec none{};
  (void)::ppoll(nullptr, 0, &none, &waiting_);
  bool came = g_interrupt != 0;
  g_interrupt = 0;
  return came;
}

bool TerminalSignals::take_resize() {
  bool came = g_resize != 0;
  g_resize = 0;
  return came;
}

int TerminalSignals::ending() const { return g_ending; }

}  // namespace tailtrace
