// ProgramFile: what a file is that somebody wants to execute, as far as its first bytes and
// its size tell.
//
// This is shared with code that lives inside qemu's process; it needs no library.
//
// Threading: functions without state.
#pragma once

#include <string>
#include <vector>

namespace tailtrace {

struct ProgramFile {
  enum class Kind {
    kUnreadable,    // `error_number` says why
    kElf64,         // an x86-64 program: qemu-x86_64 can run it
    kElf32,         // a 32-bit x86 program, or an x32 one
    kOtherMachine,  // `machine` says which
    kOtherElf,      // an object file, a core, ...
    kCutShort,      // an x86-64 program whose end is missing
    kScript,        // `interpreter`: its path and at most one argument
    kUnknown,
  };

  Kind kind = Kind::kUnknown;
  int error_number = 0;
  unsigned machine = 0;
  std::vector<std::string> interpreter;
};

ProgramFile inspect_program(const std::string& path);

// As the kernel has it (fs/exec.c): interpreters that are scripts themselves.
constexpr int kMaxInterpreters = 4;

// Whether a variable ("NAME=VALUE") would change qemu itself or its dynamic loader: the program
// gets it by qemu's option -E instead. Not those that the option cannot carry: a comma separates
// variables there.
bool goes_by_option(const std::string& variable);

// Text for the plugin's option: a comma is written twice (qemu's option syntax).
std::string escape_commas(const std::string& text);

}  // namespace tailtrace
