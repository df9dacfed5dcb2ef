// What the test guest's kernel module knows and does: the addresses of all instructions that were
// really executed while something was traced, and faults that it puts into traces on demand.
//
// Threading: one log for the whole guest.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

// Empties the log.
void reset_truth();
// Everything executed since by one thread, or by all (0), oldest first. An instruction that repeats
// itself (REP), which the log has once for each time, is one.
std::vector<Address> read_truth(std::int32_t tid = 0);

// The threads that executed any of it, by number.
std::vector<std::int32_t> traced_threads();

// Sets a parameter of the module for as long as it lives.
class ModuleParameter {
 public:
  ModuleParameter(const std::string& name, const std::string& value);
  ~ModuleParameter();
  ModuleParameter(const ModuleParameter&) = delete;
  ModuleParameter& operator=(const ModuleParameter&) = delete;

 private:
  std::string path_, before_;
};

}  // namespace tailtrace
