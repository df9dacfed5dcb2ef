#include "plugin/cli/debug_session.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "decoder/base/unix_socket.h"
#include "plugin/cli/child_signals.h"
#include "plugin/cli/server_process.h"
#include "plugin/server/below/private_folder.h"

namespace tailtrace {
namespace {

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Standard input if it is a terminal that this process group has; else -1.
int own_terminal() {
  return ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp() ? STDIN_FILENO
                                                                                 : -1;
}

// While it lives, signals from the terminal are the debugger's business and not ours.
class LeaveSignalsToDebugger {
 public:
  LeaveSignalsToDebugger() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) before_[i] = ::signal(kSignals[i], SIG_IGN);
  }
  ~LeaveSignalsToDebugger() { restore(); }
  void restore() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::signal(kSignals[i], before_[i]);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTTIN, SIGTTOU};
  std::array<void (*)(int), kSignals.size()> before_;
};

Result<pid_t> start_debugger(std::vector<std::string> words, LeaveSignalsToDebugger& signals) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start " + words.front()));
  if (pid == 0) {
    signals.restore();
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  return pid;
}

// Waits for the debugger; its exit status. One that is stopped for touching a terminal which the
// program has (`continue &`) is given it back.
int wait_for_debugger(pid_t pid, int terminal) {
  for (;;) {
    int status = 0;
    if (::waitpid(pid, &status, terminal < 0 ? 0 : WUNTRACED) < 0) {
      if (errno == EINTR) continue;
      return 127;
    }
    if (!WIFSTOPPED(status)) return exit_status_of(status);
    if (WSTOPSIG(status) != SIGTTIN && WSTOPSIG(status) != SIGTTOU) continue;
    ::tcsetpgrp(terminal, ::getpgrp());
    ::kill(pid, SIGCONT);
  }
}

}  // namespace

Result<int> run_debug_session(ServeOptions options, const DebuggerCommandLine& command_line) {
  auto folder = make_private_folder();
  if (!folder) return fail(std::move(folder.error()));
  const int terminal = own_terminal();
  const std::string socket = folder->path() + "/gdb";
  options.comm = "unix:" + socket;
  options.once = true;
  options.terminal = terminal;
  auto words = command_line(socket, folder->path());
  if (!words) return fail(std::move(words.error()));
  auto server = ServerProcess::start(std::move(options), folder->path() + "/server.log");
  if (!server) return fail(std::move(server.error()));
  int status = 0;
  {
    LeaveSignalsToDebugger signals;
    auto debugger = start_debugger(std::move(*words), signals);
    if (!debugger) return fail(std::move(debugger.error()));
    PassSignalsOn ends(*debugger);
    status = wait_for_debugger(*debugger, terminal);
    if (terminal >= 0) ::tcsetpgrp(terminal, ::getpgrp());
  }
  // A debugger that never came, as one that does not know an option, is not waited for any longer.
  // Who connects next is served only if none has before.
  (void)connect_unix(socket);
  auto program = server->wait();
  if (!program) return fail(std::move(program.error()));
  return *program ? exit_status_of(**program) : status;
}

}  // namespace tailtrace
