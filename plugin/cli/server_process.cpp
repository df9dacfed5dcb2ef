#include "plugin/cli/server_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "decoder/base/json_text.h"

namespace tailtrace {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLog_bytes = 1u << 20;

// A report is a JSON document on a line of its own.
void report(int fd, const Json& document) {
  std::string line = json_text(document) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    ssize_t n = ::write(fd, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR) return;  // nobody listens any more
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

Json to_json(const Error& error) {
  return {{"event", "failed"},  {"code", static_cast<int>(error.code)},
          {"what", error.what}, {"why", error.why},
          {"fix", error.fix},   {"now", error.now}};
}

Error to_error(const Json& document) {
  return {static_cast<ErrorCode>(document.value("code", 0)), document.value("what", ""),
          document.value("why", ""), document.value("fix", ""), document.value("now", "")};
}

// In the child: leaves our descriptors to the program and takes others.
void leave_stdio(ServeOptions& options, const std::string& log) {
  std::array<int, 3> program;
  for (int i = 0; i < 3; ++i)
    program[static_cast<std::size_t>(i)] = ::fcntl(i, F_DUPFD_CLOEXEC, 10);
  options.program_stdio = program;
  if (options.terminal >= 0) options.terminal = ::fcntl(options.terminal, F_DUPFD_CLOEXEC, 10);
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd talk(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(talk.get(), STDOUT_FILENO);
  ::dup2(talk.get(), STDERR_FILENO);
}

// The last thing that gdbserver said, or the server's status if there is nothing.
std::string why_it_ended(const std::string& log, int status) {
  std::string why = fmt::format("it ended with status {}", status);
  auto text = read_file(log, kMaxLog_bytes);
  if (!text) return why;
  std::istringstream lines{std::string(as_text(*text))};
  constexpr std::string_view kCause = "gdbserver: Error: ";  // others follow it that say less
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kCause)) return line.substr(kCause.size());
    if (!line.empty()) why = line;
  }
  return why;
}

// In the child: the server ends in an orderly way, and the program with it, when its parent is
// killed. The parent's only thread made it, so that the thread's end is the parent's.
void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
}

[[noreturn]] void become_server(ServeOptions options, const std::string& log, int reports,
                                pid_t parent) {
  ::setpgid(0, 0);
  end_with_parent(parent);
  leave_stdio(options, log);
  options.say = [](std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  options.on_listening = [reports](const std::string& comm) -> Result<void> {
    report(reports, {{"event", "listening"}, {"comm", comm}});
    return {};
  };
  options.on_program_end = [reports](int status) {
    report(reports, {{"event", "ended"}, {"status", status}});
  };
  auto status = serve(options);
  if (!status) report(reports, to_json(status.error()));
  ::_exit(status ? 0 : static_cast<int>(status.error().code));
}

}  // namespace

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reports_(std::move(other.reports_)),
      unread_(std::move(other.unread_)),
      comm_(std::move(other.comm_)),
      program_status_(other.program_status_) {}

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  wait_for_exit();
}

Result<ServerProcess> ServerProcess::start(ServeOptions options, const std::string& log) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot start the server"));
  UniqueFd reader(ends[0]), writer(ends[1]);
  std::fflush(nullptr);  // or the child would write what is buffered once more
  const pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start the server"));
  if (pid == 0) become_server(std::move(options), log, writer.get(), parent);
  ::setpgid(pid, pid);  // both sides do it: neither knows who is first
  writer.reset();
  ServerProcess server(pid, std::move(reader));
  while (server.comm_.empty()) {
    auto more = server.take_report();
    if (!more) return fail(std::move(more.error()));
    if (!*more)
      return fail(ErrorCode::kSystem, "cannot start the server",
                  why_it_ended(log, server.wait_for_exit()));
  }
  return server;
}

Result<std::optional<int>> ServerProcess::wait() {
  for (;;) {
    auto more = take_report();
    if (!more) return fail(std::move(more.error()));
    if (!*more) break;
  }
  int status = wait_for_exit();
  if (status > 128)
    return fail(ErrorCode::kSystem, "the server broke down",
                fmt::format("signal {} ended it", status - 128));
  return program_status_;
}

Result<bool> ServerProcess::take_report() {
  auto line = read_line();
  if (!line) return false;
  Json document = Json::parse(*line, nullptr, false);
  if (!document.is_object()) return false;  // cut short: the server died while it wrote
  const std::string event = document.value("event", "");
  if (event == "failed") return fail(to_error(document));
  if (event == "listening") comm_ = document.value("comm", "");
  if (event == "ended") program_status_ = document.value("status", 0);
  return true;
}

std::optional<std::string> ServerProcess::read_line() {
  for (;;) {
    if (auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char chunk[4096];
    ssize_t n = ::read(reports_.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    unread_.append(chunk, static_cast<std::size_t>(n));
  }
}

int ServerProcess::wait_for_exit() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tailtrace
