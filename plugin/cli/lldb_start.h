// How `tailtrace run --lldb` starts LLDB: connected, recording, and at `main`.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

namespace tailtrace {

struct LldbStart {
  std::string lldb;               // its path
  std::string socket;             // of the server
  std::string program;            // the file with the symbols
  std::string terminal_script;    // path of a file with lldb_terminal_script()
  bool has_main = true;           // run to it
  bool local_process = true;      // the program is itself a process of this machine, not under qemu
  bool record_from_start = true;  // as in GdbStart
  std::vector<std::string> options;  // the user's, with commands that come after ours
};

// LLDB's argv.
std::vector<std::string> lldb_command_line(const LldbStart& start);

// Python for LLDB: commands that let the program run return when it stops. Otherwise LLDB would
// read the terminal at the same time as the program does.
std::string lldb_terminal_script();

}  // namespace tailtrace
