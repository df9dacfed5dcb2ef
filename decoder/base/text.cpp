#include "decoder/base/text.h"

#include <charconv>

namespace tailtrace {

std::string_view trim(std::string_view text) {
  auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, two bytes in UTF-8, are control characters, too.
    const bool is_pair = byte == 0xc2 && i + 1 < text.size();
    const auto next = is_pair ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (next >= 0x80 && next < 0xa0) {
      shown += '?';
      ++i;
    } else {
      shown += byte < 0x20 || byte == 0x7f ? '?' : text[i];
    }
  }
  return shown;
}

std::string printable_line(std::string_view line) {
  constexpr std::size_t kTab_columns = 8;
  std::string text;
  for (char c : line) {
    text.push_back(c == '\t' ? ' ' : c);
    while (c == '\t' && text.size() % kTab_columns != 0) text.push_back(' ');
  }
  return printable(text);
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == text.npos;
  return is_plain ? std::string(text) : shell_quoted(text);
}

}  // namespace tailtrace
