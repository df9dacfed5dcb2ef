#include "plugin/cli/lldb_start.h"

#include <fmt/format.h>

#include <cstdlib>

#include "plugin/provider/child_process.h"

namespace tailtrace {
namespace {

constexpr int kPreferred = 22;
constexpr int kNewest = 40;
// The first whose trace commands ask the server for what they need.
constexpr int kOldest = 15;

// Names to try, the best first.
std::vector<std::string> names() {
  std::vector<std::string> result = {fmt::format("lldb-{}", kPreferred)};
  for (int version = kNewest; version >= kOldest; --version)
    if (version != kPreferred) result.push_back(fmt::format("lldb-{}", version));
  result.push_back("lldb");
  return result;
}

// The first number in `lldb version 22.1.8`; 0 when there is none.
int version_of(const std::string& path) {
  static constexpr std::string_view kWords = "lldb version ";
  auto outcome = run_program({path, "--version"});
  if (!outcome) return 0;
  std::size_t at = outcome->output.find(kWords);
  return at == std::string::npos ? 0 : std::atoi(outcome->output.c_str() + at + kWords.size());
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// An argument of an LLDB command.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '`') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

std::string lldb_terminal_script() {
  return "import threading\n"
         "import time\n"
         "\n"
         "\n"
         "def __lldb_init_module(debugger, _):\n"
         "    # LLDB goes back to asynchronous when it has done the commands of its command line.\n"
         "    def wait():\n"
         "        while not debugger.GetAsync():\n"
         "            time.sleep(0.001)\n"
         "        debugger.SetAsync(False)\n"
         "    threading.Thread(target=wait, daemon=True).start()\n";
}

std::vector<std::string> lldb_command_line(const LldbStart& start) {
  std::vector<std::string> words = {start.lldb, "--source-quietly"};
  auto run = [&](const std::string& command) { words.insert(words.end(), {"-o", command}); };
  // LLDB takes the file that the process executes, as the system tells, and that would be qemu.
  if (!start.local_process)
    words.insert(words.end(), {"-O", "platform select remote-linux --sysroot /"});
  words.insert(words.end(), {"-f", start.program});
  run("command script import " + quoted(start.terminal_script));
  run("process connect --plugin gdb-remote unix-connect://" + start.socket);
  if (start.record_from_start) run("process trace start");
  if (start.has_main) {
    run("breakpoint set --one-shot true --name main --shlib " + quoted(base_name(start.program)));
    run("process continue");
  }
  if (!start.record_from_start) run("process trace start");
  words.insert(words.end(), start.options.begin(), start.options.end());
  return words;
}

Result<std::string> find_lldb(const std::string& search_path) {
  const std::string fix = fmt::format("sudo apt-get install lldb-{}", kPreferred);
  std::string too_old = path_of_program("lldb-14", search_path);
  for (const std::string& name : names()) {
    std::string path = path_of_program(name, search_path);
    if (path.empty()) continue;
    if (version_of(path) >= kOldest) return path;
    too_old = path;
  }
  if (too_old.empty())
    return fail(ErrorCode::kNoEngine, "cannot start LLDB", "there is no lldb in PATH", fix);
  return fail(ErrorCode::kNoEngine, "cannot start LLDB",
              fmt::format("{} is older than version {}, the first that reads a server's trace",
                          too_old, kOldest),
              fix);
}

}  // namespace tailtrace
