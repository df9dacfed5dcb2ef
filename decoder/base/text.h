// Small things that all who read or write a user's words need.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tailtrace {

// Without the blanks and tabs around it.
std::string_view trim(std::string_view text);

// Hexadecimal behind 0x, else decimal; all of the text. Nothing when it is no such number, or does
// not fit.
std::optional<std::uint64_t> parse_number(std::string_view text);

// With '?' for each control character: names in files may hold what commands a terminal.
std::string printable(std::string_view text);

// The same of a line of somebody's file, with blanks for its tabs.
std::string printable_line(std::string_view line);

// A word for a shell in single quotes, and with them only where the shell would take it for
// something else.
std::string shell_quoted(std::string_view text);
std::string shell_word(std::string_view text);

}  // namespace tailtrace
