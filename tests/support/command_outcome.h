// What a command of `tailtrace` prints and returns, run within this program.
//
// Threading: one thread at a time, as the commands.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "plugin/cli/commands.h"

namespace tailtrace {

// A file in memory.
class CapturedFile {
 public:
  CapturedFile();
  CapturedFile(const CapturedFile&) = delete;
  CapturedFile& operator=(const CapturedFile&) = delete;
  ~CapturedFile();

  std::FILE* file() const { return file_; }
  // All that was written to it.
  std::string text();

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

struct CommandOutcome {
  int status = 0;
  std::string out, err;
};

// `args` are the words after `tailtrace`.
CommandOutcome outcome_of(std::vector<std::string> args,
                          const std::vector<Command>& table = all_commands());

}  // namespace tailtrace
