#include "plugin/cli/record_only.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "plugin/cli/child_signals.h"
#include "plugin/cli/say_recorded.h"
#include "plugin/engines/qemu/qemu_command.h"
#include "plugin/engines/qemu/qemu_process.h"

namespace tailtrace {

namespace fs = std::filesystem;

namespace {
// What helps those for whom qemu does not work, since steps need a debugger.
constexpr char kUnderDebugger[] = "--engine=step under a debugger (works without it, slower)";

Result<int> wait_for(QemuProcess& process) {
  LeaveSignalsToProgram signals;
  PassSignalsOn ends(process.pid());
  return process.wait();
}

}  // namespace

Result<std::string> free_recording_folder(const std::string& program) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path parent;
  if (state != nullptr && *state == '/')
    parent = state;
  else if (home != nullptr && *home == '/')
    parent = fs::path(home) / ".local/state";
  else
    return fail(ErrorCode::kUsage, "cannot choose a folder for the recording",
                "neither XDG_STATE_HOME nor HOME is set", "--keep=DIR");
  const std::string name = fs::path(program).filename().string();
  std::error_code ignored;
  for (int number = 1;; ++number) {
    fs::path folder = parent / "tailtrace" / fmt::format("{}.{}", name, number);
    if (!fs::exists(folder, ignored)) return folder.string();
  }
}

Result<int> record_to_end(const ServeOptions& options, std::FILE* err) {
  if (options.engine != EngineChoice::kAuto && options.engine != EngineChoice::kQemu)
    return fail(ErrorCode::kUsage, "cannot record without a debugger with that engine",
                "it works for a debugger", "--engine=qemu, pt, bts or lbr");
  QemuOptions qemu;
  qemu.program = options.program;
  qemu.ring_records = options.ring_records;
  qemu.qemu = options.qemu;
  qemu.kept_session = options.keep_folder;
  if (qemu.kept_session.empty()) {
    auto folder = free_recording_folder(options.program.front());
    if (!folder) return fail(std::move(folder.error()));
    qemu.kept_session = *folder;
  }
  auto process = QemuProcess::launch(qemu);
  if (!process) {
    if (process.error().now == kWithoutQemu) process.error().now = kUnderDebugger;
    return fail(std::move(process.error()));
  }
  auto status = wait_for(*process);
  if (!status) return fail(std::move(status.error()));
  say_recorded(process->session(), err);
  return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

}  // namespace tailtrace
