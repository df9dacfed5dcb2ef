#include "decoder/code/vdso.h"

#include <charconv>

namespace tailtrace {

std::optional<std::pair<Address, Address>> vdso_in(std::string_view maps) {
  std::size_t at = maps.find(kVdsoName);
  if (at == maps.npos) return std::nullopt;
  maps = maps.substr(0, at);
  at = maps.rfind('\n');
  if (at != maps.npos) maps.remove_prefix(at + 1);
  Address begin, end;
  const char* const last = maps.data() + maps.size();
  const auto dash = std::from_chars(maps.data(), last, begin.value, 16);
  if (dash.ec != std::errc() || dash.ptr == last || *dash.ptr != '-') return std::nullopt;
  const auto blank = std::from_chars(dash.ptr + 1, last, end.value, 16);
  if (blank.ec != std::errc() || end <= begin) return std::nullopt;
  return std::pair(begin, end);
}

}  // namespace tailtrace
