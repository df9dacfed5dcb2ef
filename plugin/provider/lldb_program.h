// Which of the installed LLDBs can read a trace from a server.
//
// Threading: any.
#pragma once

#include <string>

#include "decoder/base/result.h"

namespace tailtrace {

// The path of an LLDB that reads traces from a server: 22, which this was made with, else the
// newest. Runs those that it finds to ask their version.
// Errors: kNoEngine when there is none, or all are too old.
Result<std::string> find_lldb(const std::string& search_path);

}  // namespace tailtrace
