#include "decoder/code/vdso.h"

#include "decoder/code/maps_line.h"

namespace tailtrace {
std::optional<std::pair<Address, Address>> vdso_in(std::string_view maps) {
  while (!maps.empty()) {
    const std::string_view line = cut_line(maps);
    if (!line.ends_with(kVdsoName)) continue;
    const std::optional<MapsLine> parsed = parse_maps_line(line);
    if (!parsed || parsed->name != kVdsoName) continue;
    if (parsed->end - parsed->begin > kMaxVdso_bytes) return std::nullopt;
    return std::pair(Address{parsed->begin}, Address{parsed->end});
  }
  return std::nullopt;
}

}  // namespace tailtrace
