// What a program file is, before qemu is asked to run it: its own messages would not say what to
// do.
//
// Threading: functions without state.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

// A program that qemu-x86_64 can run.
struct Runnable {
  std::string path;                    // of the ELF file
  std::vector<std::string> arguments;  // argv, the name included
};

// Finds `arguments[0]` as a shell does, and follows `#!` lines to the interpreter.
// Errors: kUsage: empty, no such program, not executable, not for x86-64, not a program.
Result<Runnable> find_program(const std::vector<std::string>& arguments);

// A name as a shell finds it in PATH; a name with a slash is itself. Errors: kUsage.
Result<std::string> find_in_path(const std::string& name);

}  // namespace tailtrace
