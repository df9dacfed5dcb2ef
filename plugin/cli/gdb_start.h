// How `tailtrace run` starts GDB: connected, recording, and at `main`.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

namespace tailtrace {

struct GdbStart {
  std::string gdb;      // its path
  std::string target;   // what `target remote` takes
  std::string program;  // the file with the symbols
  std::string to_main;  // path of a file with to_main_script(); empty: there is no `main`
  std::vector<std::string> options;  // the user's, with commands that come after ours
  // Recording begins at the first instruction, or only at `main` where each one is stepped.
  bool record_from_start = true;
};

// GDB's argv.
std::vector<std::string> gdb_command_line(const GdbStart& start);

// GDB commands that run to `main`; they end early, with GDB's own words, in a program without one.
std::string to_main_script();

}  // namespace tailtrace
