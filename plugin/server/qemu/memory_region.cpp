#include "plugin/server/qemu/memory_region.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "decoder/code/maps_line.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

struct Range {
  std::uint64_t begin, end;
  bool contains(std::uint64_t address) const { return begin <= address && address < end; }
};

constexpr std::uint64_t page_begin(std::uint64_t at) { return at & ~(kPage_bytes - 1); }

// Where in the mapping the code of its file is: in whole pages, as the kernel maps it.
std::vector<Range> code_in(const MapsLine& line, const ElfFile& file) {
  std::vector<Range> code;
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable) continue;
    const std::uint64_t from = page_begin(segment.file_offset_bytes);
    const std::uint64_t to =
        page_begin(segment.file_offset_bytes + segment.size_bytes + kPage_bytes - 1);
    const std::uint64_t mapped_to = line.file_offset_bytes + (line.end - line.begin);
    const std::uint64_t first = std::max(from, line.file_offset_bytes);
    const std::uint64_t last = std::min(to, mapped_to);
    if (first < last)
      code.push_back({line.begin + (first - line.file_offset_bytes),
                      line.begin + (last - line.file_offset_bytes)});
  }
  return code;
}

// The part around the address that is all code or has none.
Range part_around(std::uint64_t address, Range whole, const std::vector<Range>& code,
                  bool& is_code) {
  for (const Range& one : code) {
    if (one.contains(address)) {
      is_code = true;
      return one;
    }
    if (one.end <= address) whole.begin = std::max(whole.begin, one.end);
    if (address < one.begin) whole.end = std::min(whole.end, one.begin);
  }
  return whole;
}

std::string describe(Range range) {
  return fmt::format("start:{:x};size:{:x};", range.begin, range.end - range.begin);
}

}  // namespace

std::string memory_region(std::string_view maps, std::uint64_t address,
                          const std::function<bool(Address begin, Address end)>& was_executed) {
  Range hole{0, ~0ull};
  while (!maps.empty()) {
    const auto line = parse_maps_line(cut_line(maps));
    if (!line) continue;
    Range range{line->begin, line->end};
    if (address < range.begin) return describe({hole.begin, range.begin});
    hole.begin = range.end;
    if (!range.contains(address)) continue;
    bool is_code = line->executable();
    const auto file =
        line->has_file() ? ElfFile::open(std::string(line->name)) : fail(ErrorCode::kGone, "");
    if (file)
      range = part_around(address, range, code_in(*line, *file), is_code);
    else
      is_code |= was_executed({range.begin}, {range.end});
    std::string text = describe(range) + "permissions:";
    for (char c : line->access.substr(0, 2))
      if (c != '-') text += c;
    text += is_code ? "x;" : ";";
    if (!line->name.empty()) text += "name:" + to_hex(as_bytes(line->name)) + ";";
    return text;
  }
  return describe(hole);
}

}  // namespace tailtrace
