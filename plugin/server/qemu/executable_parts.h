// Which parts of a mapping of a program under qemu may be executed.
//
// qemu maps the program's code as data: that it may be executed only the files tell, and of code
// that has none, that it was.
//
// Threading: pure functions, which read files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/code/maps_line.h"

namespace tailtrace {

struct MappedPart {
  std::uint64_t begin, end;
  bool is_executable;
};

// Whether anything of a range was.
using WasExecuted = std::function<bool(Address begin, Address end)>;

// All of the mapping, in the order of addresses.
std::vector<MappedPart> executable_parts(const MapsLine& mapping, const WasExecuted& was_executed);

// `maps` (/proc/PID/maps), with a line for each of those parts.
std::string maps_with_code(std::string_view maps, const WasExecuted& was_executed);

}  // namespace tailtrace
