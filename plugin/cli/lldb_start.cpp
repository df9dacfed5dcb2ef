#include "plugin/cli/lldb_start.h"

#include <fmt/format.h>

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
    run("breakpoint set --one-shot true --name main --shlib " +
        quoted(std::string(base_name(start.program))));
    run("process continue");
  }
  if (!start.record_from_start) run("process trace start");
  words.insert(words.end(), start.options.begin(), start.options.end());
  return words;
}

}  // namespace tailtrace
