#include "plugin/server/gdbserver_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>

namespace tailtrace {
namespace {

// qRcmd "exit": gdbserver kills or lets go what it holds, and ends.
constexpr std::string_view kMonitorExit = "qRcmd,65786974";
constexpr int kPatience_ms = 2000;

struct Terminal {
  UniqueFd master;
  std::string slave_name;
};

Result<Terminal> open_terminal() {
  Terminal terminal{UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), {}};
  char name[64];
  if (!terminal.master || ::grantpt(terminal.master.get()) != 0 ||
      ::unlockpt(terminal.master.get()) != 0 ||
      ::ptsname_r(terminal.master.get(), name, sizeof name) != 0)
    return fail(system_error("cannot open a pseudo-terminal"));
  terminal.slave_name = name;
  // Raw before anybody opens the other end: nothing may be echoed or translated, ever.
  termios mode;
  if (::tcgetattr(terminal.master.get(), &mode) != 0)
    return fail(system_error("cannot set up a pseudo-terminal"));
  ::cfmakeraw(&mode);
  if (::tcsetattr(terminal.master.get(), TCSANOW, &mode) != 0)
    return fail(system_error("cannot set up a pseudo-terminal"));
  return terminal;
}

// Where the program's stderr waits in gdbserver, whose own stderr is another: gdbserver hands on
// what it has itself, so the program is started through a shell that puts it into its place.
constexpr int kProgramStderr = 9;
constexpr const char* kRestoreStderr[] = {"sh", "-c", "'exec \"$@\" 2>&9 9>&-'", "sh"};

std::vector<std::string> command_line(const ServeOptions& options, const std::string& device) {
  // --once: should this process be killed, gdbserver notices and ends too.
  std::vector<std::string> words{options.gdbserver, "--once"};
  words.insert(words.end(), options.pass_through.begin(), options.pass_through.end());
  if (options.multi) words.push_back("--multi");
  if (!options.startup_with_shell) words.push_back("--no-startup-with-shell");
  words.push_back(options.disable_randomization ? "--disable-randomization"
                                                : "--no-disable-randomization");
  if (!options.wrapper.empty() || options.program_stdio) {
    words.push_back("--wrapper");
    if (options.program_stdio)
      words.insert(words.end(), std::begin(kRestoreStderr), std::end(kRestoreStderr));
    words.insert(words.end(), options.wrapper.begin(), options.wrapper.end());
    words.push_back("--");
  }
  if (options.attach_pid) words.push_back("--attach");
  words.push_back(device);
  if (options.attach_pid) words.push_back(std::to_string(*options.attach_pid));
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

// In the child: becomes gdbserver, with the signals as a program expects them.
[[noreturn]] void become(std::vector<std::string>& words, const ServeOptions& options,
                         bool inferior_owns_stdio) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
  if (options.program_stdio) {
    ::dup2((*options.program_stdio)[0], STDIN_FILENO);
    ::dup2((*options.program_stdio)[1], STDOUT_FILENO);
    ::dup2((*options.program_stdio)[2], kProgramStderr);
  } else if (!inferior_owns_stdio) {
    // Our stdin and stdout are the debugger's; the program gets what gdbserver gives it then.
    int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

Error no_gdbserver(const std::string& name) {
  return {ErrorCode::kNoEngine, "cannot run " + name, std::string("there is no such program"),
          "sudo apt install gdbserver", "tailtrace serve --engine=qemu needs no gdbserver"};
}

}  // namespace

GdbserverLink::GdbserverLink(UniqueFd terminal, pid_t pid)
    : connection_(std::make_unique<rsp::Connection>(std::move(terminal))),
      pid_(pid),
      process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  connection_->stop_acks();
}

GdbserverLink::~GdbserverLink() {
  if (pid_ > 0) (void)shut_down(true);
}

Result<GdbserverLink::Started> GdbserverLink::start(const ServeOptions& options,
                                                    bool inferior_owns_stdio) {
  auto terminal = open_terminal();
  if (!terminal) return fail(std::move(terminal.error()));
  std::vector<std::string> words = command_line(options, terminal->slave_name);
  // Held until gdbserver has opened it: without any slave the master reads an error.
  UniqueFd slave(::open(terminal->slave_name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start " + options.gdbserver));
  if (pid == 0) become(words, options, inferior_owns_stdio);
  Started started;
  started.link.reset(new GdbserverLink(std::move(terminal->master), pid));
  auto ready = started.link->await_first_answer();
  if (!ready) return fail(std::move(ready.error()));
  if (*ready) return started;
  started.exit_status = started.link->exit_status();
  started.link.reset();
  if (started.exit_status == 127) return fail(no_gdbserver(options.gdbserver));
  return started;
}

// Switches acknowledgements off: gdbserver answers when it has made or attached to the program.
// False when it has exited instead.
Result<bool> GdbserverLink::await_first_answer() {
  std::string frame;
  rsp::append_frame(frame, "QStartNoAckMode");
  if (auto sent = connection_->send_raw(frame); !sent) return fail(std::move(sent.error()));
  for (;;) {
    pollfd polled[] = {{connection_->in(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0 && errno != EINTR)
      return fail(system_error("cannot wait for gdbserver"));
    if (polled[1].revents != 0) return false;
    if (auto received = connection_->receive(); !received) return fail(std::move(received.error()));
    auto frame_in = connection_->next();
    if (!frame_in) return fail(std::move(frame_in.error()));
    if (!*frame_in) continue;
    // Its answer is the last packet that is acknowledged.
    if (auto sent = connection_->send_raw("+"); !sent) return fail(std::move(sent.error()));
    return true;
  }
}

Result<void> GdbserverLink::send(std::string_view payload) { return connection_->send(payload); }

Result<void> GdbserverLink::send_frame(std::string_view frame) {
  return connection_->send_raw(frame);
}

Result<void> GdbserverLink::interrupt() { return connection_->send_raw("\x03"); }

void GdbserverLink::add_poll(std::vector<pollfd>& polled) const {
  short events = POLLIN;
  if (connection_->wants_to_write()) events |= POLLOUT;
  polled.push_back({connection_->in(), events, 0});
}

Result<void> GdbserverLink::receive() {
  if (connection_->wants_to_write())
    if (auto flushed = connection_->flush(); !flushed) return flushed;
  return connection_->receive();
}

Result<std::optional<rsp::Frame>> GdbserverLink::next() { return connection_->next(); }

int GdbserverLink::exit_status() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads on meanwhile: a server whose answers nobody takes does not get to its end.
bool GdbserverLink::exits_within(int timeout_ms) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd polled[] = {{process_.get(), POLLIN, 0}, {connection_->in(), POLLIN, 0}};
    if (left.count() <= 0 || ::poll(polled, 2, static_cast<int>(left.count())) == 0) return false;
    if (polled[0].revents != 0) return true;
    if (!receive()) return ::poll(polled, 1, static_cast<int>(left.count())) > 0;
    while (next().value_or(std::nullopt)) {
    }
  }
}

int GdbserverLink::shut_down(bool running) {
  if (pid_ <= 0) return 0;
  if (running) (void)interrupt();
  (void)send(kMonitorExit);
  if (!exits_within(kPatience_ms)) {
    (void)interrupt();  // the program waits in the kernel: this gets it out
    if (!exits_within(kPatience_ms)) ::kill(pid_, SIGKILL);
  }
  return exit_status();
}

}  // namespace tailtrace
