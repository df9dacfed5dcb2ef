// What the kernel tells of a process in /proc/PID/status (proc(5)).
//
// Threading: pure functions; they read /proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace {

// All of it, a line for each value. Errors: as read_file; the process is gone.
Result<std::string> process_status(std::int32_t pid);

// The value of a line, "S (sleeping)" of "State"; empty when there is none.
std::string_view status_value(std::string_view status, std::string_view name);

}  // namespace tailtrace
