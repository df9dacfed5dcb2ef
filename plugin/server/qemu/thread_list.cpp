#include "plugin/server/qemu/thread_list.h"

#include <fmt/format.h>

#include <filesystem>

#include "plugin/engines/tasks.h"
#include "plugin/server/rsp/thread_selector.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

// As the kernel calls a process that executes it.
std::string task_name_of(const fs::path& file) {
  constexpr std::size_t kMostOfAName = 15;  // TASK_COMM_LEN, less a zero byte
  return file.filename().string().substr(0, kMostOfAName);
}

}  // namespace

std::string thread_name(const QemuInferior& inferior, ThreadId thread) {
  std::string name = name_of("", thread);
  std::error_code error;
  const fs::path emulator = fs::read_symlink(fmt::format("/proc/{}/exe", thread.pid), error);
  return name == task_name_of(emulator) ? task_name_of(inferior.executed_file()) : name;
}

std::string thread_list(std::span<const NamedThread> threads) {
  std::string list = "<threads>";
  for (const auto& [thread, name] : threads)
    list += fmt::format(R"(<thread id="{}" name="{}"/>)", rsp::format_thread(thread),
                        rsp::xml_escaped(name));
  return list + "</threads>";
}

}  // namespace tailtrace
