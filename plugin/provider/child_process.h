// Another program run to its end for what it prints.
//
// Threading: any; children are waited for by their own id.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

struct ProgramOutcome {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // stdout and stderr as they came, at most 1 MiB
};

// Runs `argv` with no standard input. argv[0] is a path or a name in PATH.
// Errors: it cannot be started; kGone when it is not done after `limit`, and has been killed.
Result<ProgramOutcome> run_program(const std::vector<std::string>& argv,
                                   std::chrono::milliseconds limit = std::chrono::seconds(20));

// The file that a name stands for: a path as it is, else the first executable one in `search_path`
// (folders separated by colons). Empty when there is none.
std::string path_of_program(const std::string& name, const std::string& search_path);

// The same in the environment's PATH.
std::string path_of_program(const std::string& name);

}  // namespace tailtrace
