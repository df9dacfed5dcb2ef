// What programs that measure answer to --help.
//
// Threading: one thread.
#pragma once

#include <fmt/core.h>

#include <string_view>

namespace tailtrace {

// Whether that was asked: then there is nothing else to do.
inline bool shows_usage(int argc, char** argv, std::string_view usage) {
  if (argc < 2 || std::string_view(argv[1]) != "--help") return false;
  fmt::print("usage: {}\n", usage);
  return true;
}

}  // namespace tailtrace
