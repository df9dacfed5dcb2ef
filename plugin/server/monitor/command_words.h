// The words of a `monitor tailtrace` command, and what is said of those that cannot be read.
//
// Threading: values; pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "decoder/base/text.h"

namespace tailtrace {

struct CommandWords {
  std::string_view rest;

  std::string_view word();
  // Sets `number`; false when the next word is none.
  template <class Number>
  bool number(Number& number) {
    const std::string_view digits = word();
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size();
  }
  bool ended() const { return trim(rest).empty(); }
  // FIRST, from 1 or back from -1, and COUNT: all that is left.
  bool stretch(std::int64_t& first, std::uint64_t& count);
};

// Texts that begin with "error: ".
std::string refusal(std::string what, std::string why, std::string fix);
std::string bad_arguments(std::string_view usage);

}  // namespace tailtrace
