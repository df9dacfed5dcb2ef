// What a program under qemu has mapped, out of what its process has: that is qemu's own memory and
// our rings as well, which are none of the debugger's business and would fill a core file.
//
// Threading: values.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

// Leaves those mappings of `maps` (/proc/PID/maps or smaps) that are the program's by its word; the
// host's addresses are the program's. Errors: those of `is_guest`.
Result<std::string> guest_part_of_maps(std::string_view maps,
                                       const std::function<Result<bool>(Address)>& is_guest);

}  // namespace tailtrace
