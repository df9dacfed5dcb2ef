#include "tests/support/qemu_steps.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

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

// "Trace CPU: HOST [CS_BASE/PC/FLAGS/CFLAGS] SYMBOL"
void read_line(const char* line, const char* end, QemuSteps& steps) {
  constexpr std::string_view kBegin = "Trace ";
  if (static_cast<std::size_t>(end - line) < kBegin.size() ||
      std::string_view(line, kBegin.size()) != kBegin)
    return;
  unsigned cpu = static_cast<unsigned>(std::strtoul(line + kBegin.size(), nullptr, 10));
  const char* slash =
      static_cast<const char*>(std::memchr(line, '/', static_cast<std::size_t>(end - line)));
  if (slash == nullptr) return;
  steps.threads[cpu].push_back(std::strtoull(slash + 1, nullptr, 16));
}

}  // namespace

Result<QemuSteps> step_under_qemu(const std::vector<std::string>& program,
                                  const std::vector<std::string>& environment) {
  Result<std::string> qemu = find_qemu("");
  if (!qemu) return fail(std::move(qemu.error()));
  TempFolder folder;
  std::string log = folder.file("log");
  std::vector<std::string> arguments = {*qemu,   "-singlestep", "-d", "exec,nochain", "-D", log,
                                        "-seed", "1",           "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
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
  Result<MappedFile> text = MappedFile::open(log);
  if (!text) return fail(std::move(text.error()));
  const char* at = reinterpret_cast<const char*>(text->bytes().data());
  const char* end = at + text->bytes().size();
  while (at < end) {
    auto* line_end =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (line_end == nullptr) break;
    read_line(at, line_end, steps);
    at = line_end + 1;
  }
  return steps;
}

}  // namespace tailtrace
