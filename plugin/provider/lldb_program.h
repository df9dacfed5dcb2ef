// Which of the installed LLDBs can read a trace from a server.
//
// Threading: any.
#pragma once

#include <string>

#include "decoder/base/result.h"

namespace tailtrace {

struct LldbProgram {
  std::string path;
  std::string version_text;  // "lldb version 22.1.8", and what else it says of it
};

// An LLDB that reads traces from a server: 22, which this was made with, else the
// newest. Runs those that it finds to ask their version.
// Errors: kNoEngine when there is none, or all are too old.
Result<LldbProgram> find_lldb(const std::string& search_path);

}  // namespace tailtrace
