#include "tests/support/qemu_steps.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "decoder/base/file.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Line {
  unsigned cpu;
  std::uint64_t pc;
};

// "Trace CPU: HOST [CS_BASE/PC/FLAGS/CFLAGS] SYMBOL"
std::optional<Line> read_line(std::string_view line) {
  constexpr std::string_view kBegin = "Trace ";
  std::size_t slash = line.find('/');
  if (!line.starts_with(kBegin) || slash == std::string_view::npos) return std::nullopt;
  return Line{static_cast<unsigned>(std::strtoul(line.data() + kBegin.size(), nullptr, 10)),
              std::strtoull(line.data() + slash + 1, nullptr, 16)};
}

template <class Take>
Result<void> read_log(const std::string& path, Take take) {
  Result<MappedFile> text = MappedFile::open(path);
  if (!text) return fail(std::move(text.error()));
  std::string_view rest = as_text(text->bytes());
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
    if (auto line = read_line(rest.substr(0, end))) take(*line);
    rest.remove_prefix(end + 1);
  }
  return {};
}

Result<void> read_logs(const std::string& folder, const std::string& log, QemuSteps& steps) {
  auto own = read_log(log, [&](Line line) { steps.threads[line.cpu].push_back(line.pc); });
  if (!own) return own;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string path = entry.path().string();
    if (!path.starts_with(log + ".")) continue;
    auto& child = steps.children[std::atoi(path.c_str() + log.size() + 1)];
    auto ok = read_log(path, [&](Line line) { child.push_back(line.pc); });
    if (!ok) return ok;
  }
  return {};
}

}  // namespace

Result<QemuSteps> step_under_qemu(const std::vector<std::string>& program,
                                  std::vector<std::string> environment) {
  Result<std::string> qemu = find_qemu("");
  if (!qemu) return fail(std::move(qemu.error()));
  TempFolder folder;
  std::string log = folder.file("log");
  std::vector<std::string> arguments = {
      *qemu, "-singlestep", "-d", "exec,nochain",       "-D", log, "-seed", "1",
      "-U",  "LD_PRELOAD",  "-U", "TAILTRACE_TEST_LOG", "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  environment.push_back("LD_PRELOAD=" TAILTRACE_BINARY_DIR "/tests/libsplit_log.so");
  environment.push_back("TAILTRACE_TEST_LOG=" + log);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(system_error("cannot start qemu", error));
  QemuSteps steps;
  ::waitpid(pid, &steps.status, 0);
  if (auto ok = read_logs(folder.path(), log, steps); !ok) return fail(std::move(ok.error()));
  return steps;
}

}  // namespace tailtrace
