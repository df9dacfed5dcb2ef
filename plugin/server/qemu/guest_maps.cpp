#include "plugin/server/qemu/guest_maps.h"

#include "decoder/code/maps_line.h"

namespace tailtrace {
Result<std::string> guest_part_of_maps(std::string_view maps,
                                       const std::function<Result<bool>(Address)>& is_guest) {
  std::string text;
  bool wanted = false;
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, std::min(maps.find('\n'), maps.size() - 1) + 1);
    maps.remove_prefix(line.size());
    // Those between them, in smaps, belong to the one before.
    if (auto mapping = parse_maps_line(line)) {
      auto is = is_guest({mapping->begin});
      if (!is) return fail(std::move(is.error()));
      wanted = *is;
    }
    if (wanted) text += line;
  }
  return text;
}

}  // namespace tailtrace
