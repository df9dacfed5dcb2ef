#include "plugin/cli/lldb_start.h"

#include <fmt/format.h>

#include <filesystem>

#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

// An argument of an LLDB command.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '`') result += '\\';
    result += c;
  }
  return result + "\"";
}

// Of an option with a file of commands, the one that has a command in its place; else null.
const char* one_line_of(std::string_view option) {
  if (option == "-s" || option == "--source") return "-o";
  if (option == "-S" || option == "--source-before-file") return "-O";
  if (option == "-K" || option == "--source-on-crash") return "-k";
  return nullptr;
}

// What the user's files of commands say is shown, although ours are quiet.
std::vector<std::string> with_files_shown(const std::vector<std::string>& options) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const char* one_line = i + 1 < options.size() ? one_line_of(options[i]) : nullptr;
    if (one_line == nullptr) {
      words.push_back(options[i]);
    } else {
      words.emplace_back(one_line);
      words.push_back("command source -s false " + quoted(options[++i]));
    }
  }
  return words;
}

}  // namespace

std::string lldb_terminal_script() {
  return R"(import threading
import time


class Wait(threading.Thread):
    # LLDB goes back to asynchronous when it has done the commands of its command line.
    def __init__(self, debugger):
        super().__init__(daemon=True)
        self.debugger = debugger
        self.over = False
        self.start()

    def run(self):
        while not (self.over or self.debugger.GetAsync()):
            time.sleep(0.001)
        if not self.over:
            self.debugger.SetAsync(False)


def __lldb_init_module(debugger, _):
    global wait
    wait = Wait(debugger)


# LLDB is asynchronous at breakpoints, too, for a moment or for what they do, and if that was seen
# then the wait ended too early.
def wait_again(debugger):
    wait.over = True
    Wait(debugger)
)";
}

std::vector<std::string> lldb_command_line(const LldbStart& start) {
  std::vector<std::string> words = {start.lldb, "--source-quietly"};
  auto run = [&](const std::string& command) { words.insert(words.end(), {"-o", command}); };
  // LLDB takes the file that the process executes, as the system tells, and that would be qemu.
  if (!start.local_process)
    words.insert(words.end(), {"-O", "platform select remote-linux --sysroot /"});
  words.insert(words.end(), {"-f", start.program});
  run("process connect --plugin gdb-remote unix-connect://" + start.socket);
  if (start.record_from_start) run("process trace start");
  if (start.has_main) {
    run("breakpoint set --one-shot true --name main --shlib " +
        quoted(std::string(base_name(start.program))));
    run("process continue");
  }
  if (!start.record_from_start) run("process trace start");
  run("command script import " + quoted(start.terminal_script));
  const std::vector<std::string> options = with_files_shown(start.options);
  words.insert(words.end(), options.begin(), options.end());
  // Not reached where one of the user's commands fails.
  const std::string module = std::filesystem::path(start.terminal_script).stem();
  run("script " + module + ".wait_again(lldb.debugger)");
  return words;
}

}  // namespace tailtrace
