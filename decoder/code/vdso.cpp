#include "decoder/code/vdso.h"

#include <algorithm>
#include <charconv>

namespace tailtrace {
namespace {

// "7ffd00001000-7ffd00003000 r-xp 00000000 00:00 0                          [vdso]"
std::optional<std::pair<Address, Address>> range_of(std::string_view line) {
  Address begin, end;
  const char* const last = line.data() + line.size();
  const auto dash = std::from_chars(line.data(), last, begin.value, 16);
  if (dash.ec != std::errc() || dash.ptr == last || *dash.ptr != '-') return std::nullopt;
  const auto blank = std::from_chars(dash.ptr + 1, last, end.value, 16);
  if (blank.ec != std::errc() || end <= begin || end - begin > kMaxVdso_bytes) return std::nullopt;
  return std::pair(begin, end);
}

// A file's path may have any words, but has a slash.
bool is_of_vdso(std::string_view line) {
  return line.ends_with(kVdsoName) && line.find('/') == line.npos;
}

}  // namespace

std::optional<std::pair<Address, Address>> vdso_in(std::string_view maps) {
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    if (is_of_vdso(line)) return range_of(line);
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
  }
  return std::nullopt;
}

}  // namespace tailtrace
