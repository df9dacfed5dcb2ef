#include "tests/support/qemu_steps.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

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

constexpr std::string_view kThreadLog = "thread.", kChildLog = "child.";

std::uint64_t hex_at(std::string_view line, std::size_t at) {
  return std::strtoull(line.data() + at, nullptr, 16);
}

Result<StepAddresses> read_log(const std::string& path) {
  Result<MappedFile> text = MappedFile::open(path);
  if (!text) return fail(std::move(text.error()));
  return read_step_log(as_text(text->bytes()));
}

Result<void> read_logs(const std::string& folder, int pid, QemuSteps& steps) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string main = fmt::format("{}{}", kThreadLog, pid);
  steps.threads.resize(1);
  for (const std::string& name : names) {
    auto log = read_log(folder + "/" + name);
    if (!log) return fail(std::move(log.error()));
    if (name == main)
      steps.threads[0] = std::move(*log);
    else
      (name.starts_with(kChildLog) ? steps.children : steps.threads).push_back(std::move(*log));
  }
  return {};
}

}  // namespace

// "Trace CPU: HOST [CS_BASE/PC/FLAGS/CFLAGS] SYMBOL" before an instruction is executed, and
// "Stopped execution of TB chain before HOST [PC] SYMBOL" when it was not after all, because
// another thread wanted all others to pause.
Result<StepAddresses> read_step_log(std::string_view log) {
  StepAddresses steps;
  for (std::size_t end; (end = log.find('\n')) != std::string_view::npos;) {
    std::string_view line = log.substr(0, end);
    std::size_t bracket = line.find('['), slash = line.find('/', bracket);
    if (line.starts_with("Trace ") && slash != std::string_view::npos) {
      steps.push_back(hex_at(line, slash + 1));
    } else if (line.starts_with("Stopped execution") && bracket != std::string_view::npos) {
      if (steps.empty() || steps.back() != hex_at(line, bracket + 1))
        return fail(ErrorCode::kBadInput, "cannot read qemu's log",
                    "another instruction was taken back than the newest: " + std::string(line));
      steps.pop_back();
    }
    log.remove_prefix(end + 1);
  }
  return steps;
}

Result<QemuSteps> step_under_qemu(const std::vector<std::string>& program,
                                  std::vector<std::string> environment) {
  Result<std::string> qemu = find_qemu("");
  if (!qemu) return fail(std::move(qemu.error()));
  TempFolder folder;
  std::vector<std::string> arguments = {
      *qemu,   "-singlestep", "-d", "exec,nochain,tid", "-D", folder.file("thread.%d"),
      "-seed", "1",           "-U", "LD_PRELOAD",       "-U", "TAILTRACE_TEST_LOG",
      "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  environment.push_back("LD_PRELOAD=" TAILTRACE_BINARY_DIR "/tests/libsplit_log.so");
  environment.push_back("TAILTRACE_TEST_LOG=" + folder.path());
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
  if (auto ok = read_logs(folder.path(), pid, steps); !ok) return fail(std::move(ok.error()));
  return steps;
}

}  // namespace tailtrace
