#include "plugin/server/qemu/memory_region.h"

#include <fmt/core.h>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

std::string describe(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("start:{:x};size:{:x};", begin, end - begin);
}

std::string describe(const MapsLine& line, const MappedPart& part) {
  std::string text = describe(part.begin, part.end) + "permissions:";
  for (char c : line.access.substr(0, 2))
    if (c != '-') text += c;
  text += part.is_executable ? "x;" : ";";
  if (!line.name.empty()) text += "name:" + to_hex(as_bytes(line.name)) + ";";
  return text;
}

}  // namespace

std::string memory_region(std::string_view maps, std::uint64_t address,
                          const WasExecuted& was_executed) {
  std::uint64_t hole = 0;
  while (!maps.empty()) {
    const auto line = parse_maps_line(cut_line(maps));
    if (!line) continue;
    if (address < line->begin) return describe(hole, line->begin);
    hole = line->end;
    if (address >= line->end) continue;
    for (const MappedPart& part : executable_parts(*line, was_executed))
      if (address < part.end) return describe(*line, part);
  }
  return describe(hole, ~0ull);
}

}  // namespace tailtrace
