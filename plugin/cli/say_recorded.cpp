#include "plugin/cli/say_recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tailtrace {

void say_recorded(const std::string& path, std::FILE* err) {
  fmt::print(err, "recorded: tailtrace history {}\n", shell_word(path));
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "_-./,:+@%=";
  const bool is_plain = std::ranges::all_of(word, [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != kPlain.npos;
  });
  if (is_plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace tailtrace
