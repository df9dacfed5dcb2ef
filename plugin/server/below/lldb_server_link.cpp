#include "plugin/server/below/lldb_server_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "plugin/provider/child_process.h"

namespace tailtrace {
namespace {

constexpr int kNewest = 40, kOldest = 15;
constexpr int kItsTalk = 3;

// In the child: becomes lldb-server, with the signals as a program expects them.
[[noreturn]] void become(const std::string& path, std::vector<std::string> words, int talk,
                         const NewThreads& new_threads) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
  if (talk == kItsTalk)
    ::fcntl(talk, F_SETFD, 0);
  else
    ::dup2(talk, kItsTalk);
  new_threads.become_its(kItsTalk + 1, true);
  words.insert(words.begin(), {path, "gdbserver", fmt::format("--fd={}", kItsTalk)});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(kNoProgram);
}

bool is_this_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::equivalent(path, "/proc/self/exe", error);
}

bool is_usable(const std::string& path) {
  return !path.empty() && ::access(path.c_str(), X_OK) == 0 && !is_this_program(path);
}

std::string beside_debugger(pid_t debugger) {
  std::error_code error;
  auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", debugger), error);
  return error ? std::string() : (program.parent_path() / "lldb-server").string();
}

}  // namespace

tl::unexpected<Error> not_lldb_server(const std::string& path, std::string why) {
  return fail(ErrorCode::kNoEngine, "cannot use " + path + " as LLDB's lldb-server", std::move(why),
              "export TAILTRACE_LLDB_SERVER=/usr/lib/llvm-22/bin/lldb-server");
}

LldbServerLink::LldbServerLink(UniqueFd talk, NewThreads new_threads, pid_t pid)
    : connection_(std::make_unique<rsp::Connection>(std::move(talk))),
      new_threads_(std::move(new_threads)),
      pid_(pid),
      process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

LldbServerLink::~LldbServerLink() {
  if (pid_ > 0) (void)shut_down(true);
}

Result<LldbServerLink::Started> LldbServerLink::start(const std::string& path,
                                                      const std::vector<std::string>& words,
                                                      EndSignals& signals) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(system_error("cannot make a socket pair"));
  UniqueFd talk(pair[0]), its_talk(pair[1]);
  auto new_threads = NewThreads::open();
  if (!new_threads) return fail(std::move(new_threads.error()));
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start " + path));
  if (pid == 0) become(path, words, its_talk.get(), *new_threads);
  its_talk.reset();
  new_threads->started();
  Started started;
  started.link.reset(new LldbServerLink(std::move(talk), std::move(*new_threads), pid));
  auto ready = started.link->await_first_answer(signals);
  if (!ready && ready.error().code == ErrorCode::kNoEngine)
    return not_lldb_server(path, ready.error().why);
  if (!ready) return fail(std::move(ready.error()));
  if (*ready) return started;
  started.exit_status = started.link->exit_status();
  started.link.reset();
  return started;
}

// Switches acknowledgements off. False when it has exited instead. Whatever speaks otherwise is no
// lldb-server.
Result<bool> LldbServerLink::await_first_answer(EndSignals& signals) {
  if (auto sent = connection_->send("QStartNoAckMode"); !sent) return false;
  for (;;) {
    std::vector<pollfd> polled = {{connection_->in(), POLLIN, 0}};
    new_threads_.add_poll(polled);
    if (auto waited = signals.wait(polled); !waited) return fail(std::move(waited.error()));
    new_threads_.receive();
    if (auto received = connection_->receive(); !received) {
      if (received.error().code == ErrorCode::kGone) return false;
      return fail(std::move(received.error()));
    }
    auto answer = connection_->next();
    if (!answer) return fail(std::move(answer.error()));
    if (!*answer) continue;
    if ((*answer)->payload != "OK")
      return fail(ErrorCode::kNoEngine, "", "it answers the first packet as none does");
    connection_->stop_acks();
    return true;
  }
}

Result<void> LldbServerLink::send(std::string_view payload) {
  has_attached_ |= payload.starts_with("vAttach");
  if (payload.starts_with("Z0,")) breakpoints_.emplace(payload.substr(1));
  if (payload.starts_with("z0,")) breakpoints_.erase(std::string(payload.substr(1)));
  return connection_->send(payload);
}

void LldbServerLink::add_poll(std::vector<pollfd>& polled) const {
  short events = POLLIN;
  if (connection_->wants_to_write()) events |= POLLOUT;
  polled.push_back({connection_->in(), events, 0});
  new_threads_.add_poll(polled);
}

Result<void> LldbServerLink::receive() {
  new_threads_.receive();
  if (connection_->wants_to_write())
    if (auto flushed = connection_->flush(); !flushed) return flushed;
  return connection_->receive();
}

bool LldbServerLink::exits_within(int timeout_ms) {
  new_threads_.close();
  pollfd polled{process_.get(), POLLIN, 0};
  return ::poll(&polled, 1, timeout_ms) > 0;
}

// A packet that begins with the word.
bool LldbServerLink::says_within(int timeout_ms, std::string_view word) {
  for (;;) {
    while (auto frame = next().value_or(std::nullopt))
      if (frame->payload.starts_with(word)) return true;
    pollfd polled{connection_->in(), POLLIN, 0};
    if (::poll(&polled, 1, timeout_ms) <= 0 || !receive()) return false;
  }
}

// A step that has not ended would end the program: the trap comes to nobody then. So would a
// breakpoint, which lldb-server leaves behind.
void LldbServerLink::let_go(bool running) {
  if (running && interrupt()) (void)says_within(kServerPatience_ms, "T");
  for (const std::string& breakpoint : std::exchange(breakpoints_, {}))
    if (send("z" + breakpoint)) (void)says_within(kServerPatience_ms, "");
  if (send("D")) (void)says_within(kServerPatience_ms, "OK");
}

int LldbServerLink::shut_down(bool running) {
  if (pid_ <= 0) return 0;
  if (has_attached_) let_go(running);
  connection_.reset();
  for (int signal : {SIGTERM, SIGKILL})
    if (!exits_within(kServerPatience_ms)) ::kill(pid_, signal);
  return exit_status();
}

int LldbServerLink::exit_status() {
  int status = 0;
  if (pid_ <= 0) return 0;
  // Where no more than the line to it is broken, it has to be told.
  if (connection_) ::shutdown(connection_->in(), SHUT_RDWR);
  if (!exits_within(kServerPatience_ms)) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<std::string> find_lldb_server(const std::string& named, pid_t debugger,
                                     const std::string& search_path) {
  const std::string what = "cannot find LLDB's lldb-server";
  if (!named.empty()) {
    std::string path = path_of_program(named, search_path);
    if (is_usable(path)) return path;
    return fail(ErrorCode::kNoEngine, what,
                fmt::format("{} ($TAILTRACE_LLDB_SERVER) is no program that can be run", named),
                "export TAILTRACE_LLDB_SERVER=/usr/lib/llvm-22/bin/lldb-server");
  }
  if (std::string path = beside_debugger(debugger); is_usable(path)) return path;
  for (int version = kNewest; version >= kOldest; --version) {
    std::string path = path_of_program(fmt::format("lldb-server-{}", version), search_path);
    if (is_usable(path)) return path;
  }
  if (std::string path = path_of_program("lldb-server", search_path); is_usable(path)) return path;
  return fail(ErrorCode::kNoEngine, what,
              "it is neither beside LLDB nor in PATH, and $TAILTRACE_LLDB_SERVER names none",
              "sudo apt-get install lldb-22");
}

}  // namespace tailtrace
