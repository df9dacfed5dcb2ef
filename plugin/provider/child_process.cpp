#include "plugin/provider/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput_bytes = 1u << 20;

bool is_executable_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Result<pid_t> spawn(const std::vector<std::string>& argv, int output) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  ::posix_spawn_file_actions_adddup2(&actions, output, 2);
  pid_t pid = -1;
  int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(system_error("cannot run " + argv[0], error));
  return pid;
}

// Until the other side closes. False: the time was up.
bool read_until_closed(int fd, Clock::time_point end, std::string& output) {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd item{fd, POLLIN, 0};
    if (::poll(&item, 1, static_cast<int>(left)) <= 0) continue;  // the loop looks at the clock
    char chunk[4096];
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return true;
    if (n > 0 && output.size() < kMaxOutput_bytes) output.append(chunk, static_cast<size_t>(n));
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<ProgramOutcome> run_program(const std::vector<std::string>& argv,
                                   std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot run " + argv[0]));
  UniqueFd reader(ends[0]), writer(ends[1]);
  auto pid = spawn(argv, writer.get());
  if (!pid) return fail(std::move(pid.error()));
  writer.reset();
  ProgramOutcome outcome;
  bool done = read_until_closed(reader.get(), Clock::now() + limit, outcome.output);
  if (!done) ::kill(*pid, SIGKILL);
  outcome.status = wait_for(*pid);
  if (!done)
    return fail(ErrorCode::kGone, "cannot run " + argv[0],
                "it was not done after " + std::to_string(limit.count()) + " ms");
  return outcome;
}

std::string path_of_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) return is_executable_file(name) ? name : "";
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable_file(path)) return path;
  }
  return {};
}

std::string path_of_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  return path_of_program(name, path == nullptr ? "/usr/bin:/bin" : path);
}

}  // namespace tailtrace
