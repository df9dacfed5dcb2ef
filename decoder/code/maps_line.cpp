#include "decoder/code/maps_line.h"

#include <algorithm>
#include <charconv>

namespace tailtrace {
namespace {

std::optional<std::uint64_t> hex_in(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number, 16);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

std::string_view from_to(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<std::size_t>(last.data() + last.size() - first.data())};
}

}  // namespace

std::string_view cut_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view cut_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

ChangedLines changed_lines(std::string_view before, std::string_view now) {
  const auto differ = std::mismatch(before.begin(), before.end(), now.begin(), now.end()).first;
  const std::string_view same = before.substr(0, static_cast<std::size_t>(differ - before.begin()));
  const std::size_t lines_end = same.rfind('\n') + 1;  // 0 where there is none
  before.remove_prefix(lines_end);
  now.remove_prefix(lines_end);
  const auto last = std::mismatch(before.rbegin(), before.rend(), now.rbegin(), now.rend()).first;
  std::string_view tail = before.substr(static_cast<std::size_t>(last.base() - before.begin()));
  cut_line(tail);  // of which there may be no more than the end
  before.remove_suffix(tail.size());
  now.remove_suffix(tail.size());
  return {before, now};
}

std::optional<MapsLine> parse_maps_line(std::string_view line) {
  const std::string_view range = cut_word(line);
  MapsLine parsed;
  parsed.access = cut_word(line);
  const std::string_view offset = cut_word(line), device = cut_word(line);
  const std::string_view inode = cut_word(line);
  const std::size_t dash = range.find('-');
  if (dash == range.npos || parsed.access.size() < 4) return std::nullopt;
  const auto begin = hex_in(range.substr(0, dash)), end = hex_in(range.substr(dash + 1));
  const auto file_offset = hex_in(offset);
  if (!begin || !end || !file_offset || *begin >= *end) return std::nullopt;
  parsed.begin = *begin;
  parsed.end = *end;
  parsed.file_offset_bytes = *file_offset;
  parsed.backing = from_to(offset, inode);
  parsed.file_id = from_to(device, inode);
  parsed.name = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return parsed;
}

std::string_view path_in_maps_line(std::string_view line) {
  return line.substr(std::min(line.find('/'), line.size()));
}

}  // namespace tailtrace
