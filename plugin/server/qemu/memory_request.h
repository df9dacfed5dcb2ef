// Requests to read and write memory, in parts that qemu's stub has room for. Debuggers are told of
// more room than it has, for their other requests: the arguments of a program may be long.
//
// Threading: values, no shared state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailtrace {

// `mADDRESS,LENGTH` or `MADDRESS,LENGTH:BYTES`; what is none, or is short, as it is.
std::vector<std::string> parts_of_memory_request(std::string_view request);

}  // namespace tailtrace
