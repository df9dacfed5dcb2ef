// The answer to `qMemoryRegionInfo:ADDRESS` (LLDB's) of a program under qemu.
//
// qemu maps the program's code from files as data: that it may be executed only the files tell.
// LLDB takes a caller that stands where nothing may be executed for none.
//
// Threading: pure functions, which read files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "decoder/base/types.h"

namespace tailtrace {

// `maps`: the program's part of /proc/PID/maps. `was_executed`: whether anything of a range was.
std::string memory_region(std::string_view maps, std::uint64_t address,
                          const std::function<bool(Address begin, Address end)>& was_executed);

}  // namespace tailtrace
