// The build id of a file, which tells it from those that are made in its place later.
//
// Threading: on any thread.
#pragma once

#include <string>

namespace tailtrace {

// In hexadecimal; empty: it is no ELF file of 64 bits, or has none.
std::string build_id_of(const std::string& path);

}  // namespace tailtrace
