#include "plugin/lldb/program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "decoder/base/file.h"
#include "plugin/lldb/session.h"

extern char** environ;

namespace tailtrace::lldb_plugin {
namespace {

constexpr int kBetweenLooks_ms = 100;
constexpr std::size_t kMaxOutput_bytes = 256 << 20;

// LLDB 19 and older let no plugin show progress, and whoever calls what is not there ends them.
bool can_show_progress() {
  return ::dlsym(RTLD_DEFAULT, "_ZN4lldb10SBProgressC1EPKcS2_RNS_10SBDebuggerE") != nullptr;
}

// A child that ends with its owner.
class Child {
 public:
  static Result<Child> start(const std::vector<std::string>& args);
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        out_(std::move(other.out_)),
        err_(std::move(other.err_)) {}
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
  }

  // What it has to say next, within a moment. False when it has said all.
  Result<bool> listen(Answer& answer);
  int wait();

 private:
  Child(pid_t pid, UniqueFd out, UniqueFd err)
      : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}

  pid_t pid_;
  UniqueFd out_, err_;
};

Result<Child> Child::start(const std::vector<std::string>& args) {
  std::string path = program_path();
  std::vector<char*> argv{path.data()};
  std::vector<std::string> words = args;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
  UniqueFd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
  UniqueFd err_read(err[0]), err_write(err[1]);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out_write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&files, err_write.get(), 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, plain;
  ::sigemptyset(&none);
  ::sigemptyset(&plain);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM}) ::sigaddset(&plain, signal);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &plain);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  int failure = ::posix_spawnp(&pid, path.c_str(), &files, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (failure == 0) return Child(pid, std::move(out_read), std::move(err_read));
  errno = failure;
  return fail(system_error("cannot run " + path));
}

Result<bool> Child::listen(Answer& answer) {
  std::array<pollfd, 2> polled = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0}};
  if (::poll(polled.data(), polled.size(), kBetweenLooks_ms) < 0 && errno != EINTR)
    return fail(system_error("cannot wait for tailtrace"));
  std::array<UniqueFd*, 2> pipes = {&out_, &err_};
  std::array<std::string*, 2> texts = {&answer.out, &answer.err};
  for (std::size_t i = 0; i < 2; ++i) {
    if (polled[i].revents == 0) continue;
    std::array<char, 1 << 16> piece;
    ssize_t n = ::read(pipes[i]->get(), piece.data(), piece.size());
    if (n > 0) texts[i]->append(piece.data(), static_cast<std::size_t>(n));
    if (n == 0) pipes[i]->reset();
  }
  if (answer.out.size() + answer.err.size() > kMaxOutput_bytes)
    return fail(ErrorCode::kSystem, "cannot show all of that", "it is more than 256 MiB",
                "ask for a range, or export it into a file");
  return out_.get() >= 0 || err_.get() >= 0;
}

int Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::filesystem::path plugin_folder() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&plugin_folder), &here) == 0 || here.dli_fname == nullptr)
    return {};
  return std::filesystem::path(here.dli_fname).parent_path();
}

std::string program_path() {
  for (const char* from_here : {"../tailtrace", "../../bin/tailtrace"})
    if (std::string path = plugin_folder() / from_here;
        std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0)
      return path;
  return "tailtrace";
}

Result<Answer> run_tailtrace(lldb::SBDebugger& debugger, const std::vector<std::string>& args) {
  std::optional<lldb::SBProgress> progress;
  if (can_show_progress())
    progress.emplace("tailtrace", args.empty() ? "" : args.front().c_str(), debugger);
  auto child = Child::start(args);
  if (!child) return fail(std::move(child.error()));
  Answer answer;
  for (bool more = true; more;) {
    if (debugger.InterruptRequested()) return interrupted();
    auto heard = child->listen(answer);
    if (!heard) return fail(std::move(heard.error()));
    more = *heard;
  }
  answer.status = child->wait();
  // A terminal's Ctrl-C is told to both of us, and may have ended it first.
  if (answer.status == 128 + SIGINT) return interrupted();
  return answer;
}

}  // namespace tailtrace::lldb_plugin
