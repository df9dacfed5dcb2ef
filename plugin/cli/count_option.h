// Options that take whole numbers, such as --limit=N.
//
// Threading: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace tailtrace {

constexpr std::uint64_t kMostCounted = ~std::uint64_t{0};

// Refuses words that are no such number, and says which are.
CLI::Validator number_between(std::uint64_t least, std::uint64_t most = kMostCounted);

// Adds one. -1 is refused, which the parser alone takes for the largest number there is; what is
// larger than that one is that one.
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text, std::uint64_t least = 0);

}  // namespace tailtrace
