// A core file of a program that goes on living, as debuggers read it (core(5), elf(5)): registers
// of all threads, the list of mapped files, and the memory that is the program's own. What a file
// backs and nobody has written to is left to the file, but for its first page, which names its
// build.
//
// Threading: pure functions, but for what the subject does.
#pragma once

#include <string>

#include "decoder/base/result.h"
#include "plugin/recorder/subject.h"

namespace tailtrace {

struct CoreSettings {
  ThreadId first;  // the thread that a debugger shows first
  int signal = 0;  // that it stopped for
  std::string command;
};

// Writes a new file at `path`. Errors: kSystem, as when the disk is full: then there is no file.
Result<void> write_core(Subject& subject, const CoreSettings& settings, const std::string& path);

}  // namespace tailtrace
