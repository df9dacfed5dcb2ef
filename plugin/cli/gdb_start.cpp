#include "plugin/cli/gdb_start.h"

namespace tailtrace {

std::string to_main_script() {
  // A script ends with the first command that fails: without `main` nothing is continued.
  return "set breakpoint pending off\n"
         "tbreak main\n"
         "continue\n";
}

std::vector<std::string> gdb_command_line(const GdbStart& start) {
  // The program and its libraries are files of this machine: no need to ask the server for them.
  std::vector<std::string> words = {start.gdb, "-q", "-iex", "set sysroot /"};
  auto run = [&](const std::string& command) { words.insert(words.end(), {"-ex", command}); };
  const std::string record = "record btrace pt";
  run("target remote " + start.target);
  if (start.record_from_start) run(record);
  if (start.to_main.empty())
    run("echo The program has no symbol `main`: this is its first instruction.\\n");
  else
    words.insert(words.end(), {"-x", start.to_main});
  if (!start.record_from_start) run(record);
  run("set breakpoint pending auto");
  words.insert(words.end(), start.options.begin(), start.options.end());
  words.push_back("--se=" + start.program);
  return words;
}

}  // namespace tailtrace
