// Options that take whole numbers, such as --limit=N.
//
// Threading: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace tailtrace {

// Adds one. -1 is refused, which the parser alone takes for the largest number there is; what is
// larger than that one is that one.
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text, std::uint64_t least = 0);

}  // namespace tailtrace
