// What can be recorded of a process at all.
//
// Threading: pure functions.
#pragma once

#include <cstdint>

#include "decoder/base/result.h"

namespace tailtrace {

// Only 64-bit code is recorded. Looks at the file that the process executes; one that cannot be
// read is taken for good. Errors: kUsage.
Result<void> check_program(std::int32_t pid);

}  // namespace tailtrace
