#include "plugin/server/below/gdbserver_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "decoder/base/text.h"
#include "plugin/server/below/server_link.h"

namespace tailtrace {
namespace {

// Shells name descriptors by one digit only, all of them.
constexpr int kFirstKeeper = 3, kLastKeeper = 9;

// Closed, or closed by itself when another program is executed.
bool is_free(int fd) {
  int flags = ::fcntl(fd, F_GETFD);
  return flags < 0 || (flags & FD_CLOEXEC) != 0;
}

Result<std::array<int, 3>> find_keepers() {
  std::array<int, 3> found{};
  std::size_t n = 0;
  for (int fd = kLastKeeper; fd >= kFirstKeeper && n < found.size(); --fd)
    if (is_free(fd)) found[n++] = fd;
  if (n == found.size()) return found;
  return fail(ErrorCode::kSystem, "cannot start gdbserver",
              fmt::format("descriptors {} to {} are all in use", kFirstKeeper, kLastKeeper));
}

// gdbserver starts programs with the user's shell, and ours has to understand the redirections.
bool is_plain_shell(const char* shell) {
  if (shell == nullptr) return true;  // then it is /bin/sh
  std::string name = shell;
  name.erase(0, name.rfind('/') + 1);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh" || name == "ksh";
}

// gdbserver puts a wrapper's words into a shell command as they are, redirections included. One
// more program is executed by it and counted on, so there has to be one: a shell again.
std::vector<std::string> wrapper_words(const ServeOptions& options, const std::array<int, 3>& keep,
                                       bool restores_shell) {
  std::vector<std::string> words = options.wrapper;
  if (words.empty()) {
    std::string script = "exec \"$@\"";
    if (restores_shell)
      script.insert(0, "export SHELL=" + shell_quoted(std::getenv("SHELL")) + "; ");
    words = {"/bin/sh", "-c", shell_quoted(script), "sh"};
  }
  words.push_back(fmt::format("<&{} {}<&-", keep[0], keep[0]));
  words.push_back(fmt::format(">&{} {}>&-", keep[1], keep[1]));
  words.push_back(fmt::format("2>&{} {}>&-", keep[2], keep[2]));
  return words;
}

std::array<int, 3> stdio_of_program(const ServeOptions& options, bool inferior_owns_stdio) {
  if (options.program_stdio) return *options.program_stdio;
  if (inferior_owns_stdio) return {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  return {-1, STDERR_FILENO, STDERR_FILENO};
}

// A copy above all descriptors that get a meaning.
int out_of_the_way(int fd) {
  if (fd < 0) fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return ::fcntl(fd, F_DUPFD_CLOEXEC, kLastKeeper + 1);
}

}  // namespace

Result<GdbserverCommand> GdbserverCommand::make(const ServeOptions& options,
                                                bool inferior_owns_stdio) {
  GdbserverCommand command;
  auto keepers = find_keepers();
  if (!keepers) return fail(std::move(keepers.error()));
  command.keepers_ = *keepers;
  command.stdio_ = stdio_of_program(options, inferior_owns_stdio);
  bool plain_shell = is_plain_shell(std::getenv("SHELL"));
  if (!plain_shell) command.shell_ = "/bin/sh";
  std::vector<std::string>& words = command.words_;
  words = {options.gdbserver};
  // With this it lets go of the process in good order should we be killed. It also gives up at the
  // first request that it cannot make sense of, so it is for processes that are not ours only.
  command.outlives_us_ = options.attach_pid.has_value();
  if (command.outlives_us_) words.push_back("--once");
  words.insert(words.end(), options.pass_through.begin(), options.pass_through.end());
  if (options.multi) words.push_back("--multi");
  words.push_back(options.disable_randomization ? "--disable-randomization"
                                                : "--no-disable-randomization");
  words.push_back("--wrapper");
  for (std::string& word : wrapper_words(options, command.keepers_, !plain_shell))
    words.push_back(std::move(word));
  words.push_back("--");
  if (options.attach_pid) words.push_back("--attach");
  words.push_back("stdio");
  if (options.attach_pid) words.push_back(std::to_string(*options.attach_pid));
  words.insert(words.end(), options.program.begin(), options.program.end());
  return command;
}

Result<pid_t> GdbserverCommand::start(int talk, int messages, const NewThreads& new_threads) const {
  pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start " + words_.front()));
  if (pid == 0) become(talk, messages, new_threads, parent);
  return pid;
}

// In the child: becomes gdbserver, with the signals as a program expects them.
void GdbserverCommand::become(int talk, int messages, const NewThreads& new_threads,
                              pid_t parent) const {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
  if (!outlives_us_) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kNoProgram);  // too late for that
  }
  // A group of its own: Ctrl-C is for us, and we end it in good order.
  ::setpgid(0, 0);
  talk = out_of_the_way(talk);
  messages = out_of_the_way(messages);
  std::array<int, 3> stdio = stdio_;
  for (int& fd : stdio) fd = out_of_the_way(fd);
  for (std::size_t i = 0; i < stdio.size(); ++i) ::dup2(stdio[i], keepers_[i]);
  ::dup2(talk, STDIN_FILENO);
  ::dup2(talk, STDOUT_FILENO);
  ::dup2(messages, STDERR_FILENO);
  if (!shell_.empty()) ::setenv("SHELL", shell_.c_str(), 1);
  new_threads.become_its(kLastKeeper + 1, false);
  std::vector<char*> argv;
  for (const std::string& word : words_) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(kNoProgram);
}

}  // namespace tailtrace
