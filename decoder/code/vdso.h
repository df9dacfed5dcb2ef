// The vDSO: code that the kernel puts into each process, an ELF image that no file has. Programs
// read the clock by it. (vdso(7))
//
// Threading: pure function.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "decoder/base/types.h"

namespace tailtrace {

constexpr std::string_view kVdsoName = "[vdso]";  // in /proc/PID/maps

constexpr std::size_t kMaxVdso_bytes = 1 << 20;  // more is none

// Where a process has it, begin and end, no more than kMaxVdso_bytes; `maps` as /proc/PID/maps.
// Nothing: it has none.
std::optional<std::pair<Address, Address>> vdso_in(std::string_view maps);

}  // namespace tailtrace
