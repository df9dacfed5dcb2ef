#include "plugin/server/qemu/guest_maps.h"

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

// The beginning of a mapping, if this is its first line (`begin-end perms ...`).
std::optional<Address> mapping_of(std::string_view line) {
  std::size_t dash = line.find('-'), space = line.find(' ');
  if (dash == std::string_view::npos || space == std::string_view::npos || dash > space)
    return std::nullopt;
  auto begin = parse_hex(line.substr(0, dash));
  if (!begin || !parse_hex(line.substr(dash + 1, space - dash - 1))) return std::nullopt;
  return Address{*begin};
}

}  // namespace

Result<std::string> guest_part_of_maps(std::string_view maps,
                                       const std::function<Result<bool>(Address)>& is_guest) {
  std::string text;
  bool wanted = false;
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, std::min(maps.find('\n'), maps.size() - 1) + 1);
    maps.remove_prefix(line.size());
    if (auto begin = mapping_of(line)) {
      auto is = is_guest(*begin);
      if (!is) return fail(std::move(is.error()));
      wanted = *is;
    }
    if (wanted) text += line;
  }
  return text;
}

}  // namespace tailtrace
