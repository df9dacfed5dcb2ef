#include "plugin/server/qemu/executable_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t page_begin(std::uint64_t at) { return at & ~(kPage_bytes - 1); }

// Where in the mapping the code of its file is: in whole pages, as the kernel maps it.
std::vector<MappedPart> code_in(const MapsLine& mapping, const ElfFile& file) {
  std::vector<MappedPart> code;
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable) continue;
    const std::uint64_t from = page_begin(segment.file_offset_bytes);
    const std::uint64_t to =
        page_begin(segment.file_offset_bytes + segment.size_bytes + kPage_bytes - 1);
    const std::uint64_t mapped_to = mapping.file_offset_bytes + (mapping.end - mapping.begin);
    const std::uint64_t first = std::max(from, mapping.file_offset_bytes);
    const std::uint64_t last = std::min(to, mapped_to);
    if (first < last)
      code.push_back({mapping.begin + (first - mapping.file_offset_bytes),
                      mapping.begin + (last - mapping.file_offset_bytes), true});
  }
  return code;
}

std::string line_of(const MapsLine& mapping, const MappedPart& part) {
  std::string access(mapping.access);
  if (part.is_executable) access[2] = 'x';
  const std::string line =
      fmt::format("{:08x}-{:08x} {} {:08x} {}", part.begin, part.end, access,
                  mapping.file_offset_bytes + (part.begin - mapping.begin), mapping.file_id);
  // proc_pid_maps(5) has names in that column.
  return mapping.name.empty() ? line + " \n" : fmt::format("{:<72} {}\n", line, mapping.name);
}

}  // namespace

std::vector<MappedPart> executable_parts(const MapsLine& mapping, const WasExecuted& was_executed) {
  // Of data that a program may change the file tells nothing: a page of it may have code as well.
  const bool file_tells = mapping.has_file() && !mapping.writable();
  const auto file =
      file_tells ? ElfFile::open(std::string(mapping.name)) : fail(ErrorCode::kGone, "");
  if (mapping.executable() || !file)
    return {{mapping.begin, mapping.end,
             mapping.executable() || was_executed({mapping.begin}, {mapping.end})}};
  std::vector<MappedPart> parts;
  std::uint64_t at = mapping.begin;
  for (const MappedPart& code : code_in(mapping, *file)) {
    if (at < code.begin) parts.push_back({at, code.begin, false});
    if (at < code.end) parts.push_back({std::max(at, code.begin), code.end, true});
    at = std::max(at, code.end);
  }
  if (at < mapping.end) parts.push_back({at, mapping.end, false});
  return parts;
}

std::string maps_with_code(std::string_view maps, const WasExecuted& was_executed) {
  std::string text;
  while (!maps.empty()) {
    const auto mapping = parse_maps_line(cut_line(maps));
    if (!mapping) continue;
    for (const MappedPart& part : executable_parts(*mapping, was_executed))
      text += line_of(*mapping, part);
  }
  return text;
}

}  // namespace tailtrace
