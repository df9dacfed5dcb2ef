// What is known to go wrong on a machine although nothing is refused: processors with two kinds of
// cores, kernels that hide themselves from user code, and defects of kernels by their version.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "plugin/engines/machine.h"

namespace tailtrace::perf {

struct Trouble {
  std::string subject;  // one or two words: "hybrid"
  std::string what;     // what it does to a recording, one line
  std::string why;      // as measured
  std::string fix;      // may be empty: nothing need be done
};

// Nothing for a machine without PMUs that record branches.
std::vector<Trouble> known_trouble(const Machine& machine);

// "6.12.0-18-amd64" is at least 6.12. A release that is no version is taken for a new one.
bool is_at_least(const std::string& release, int major, int minor);

}  // namespace tailtrace::perf
