// The answer to `qMemoryRegionInfo:ADDRESS` (LLDB's) of a program under qemu. LLDB takes a caller
// that stands where nothing may be executed for none.
//
// Threading: pure functions, which read files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plugin/server/qemu/executable_parts.h"

namespace tailtrace {

// `maps`: the program's part of /proc/PID/maps.
std::string memory_region(std::string_view maps, std::uint64_t address,
                          const WasExecuted& was_executed);

}  // namespace tailtrace
