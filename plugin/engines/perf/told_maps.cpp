#include "plugin/engines/perf/told_maps.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>

namespace tailtrace::perf {
namespace {

using KnownLines = std::map<std::uint64_t, std::string>;

std::string text_of_lines(const KnownLines& lines) {
  std::string text;
  for (const auto& [begin, line] : lines) text.append(line).append("\n");
  return text;
}

// The first of them that may overlap what begins there.
template <class Known>
auto first_over(Known& lines, std::uint64_t begin) {
  auto at = lines.upper_bound(begin);
  return at == lines.begin() ? at : std::prev(at);
}

// A part of what a line shows.
std::string part_of_line(const MapsLine& line, std::uint64_t begin, std::uint64_t end) {
  return fmt::format("{:x}-{:x} {} {:08x} {} {}", begin, end, line.access,
                     line.file_offset_bytes + (begin - line.begin), line.file_id, line.name);
}

// Leaves room for what comes.
void cut_out(KnownLines& lines, std::uint64_t begin, std::uint64_t end) {
  for (auto at = first_over(lines, begin); at != lines.end() && at->first < end;) {
    const std::string text = std::move(at->second);
    const auto old = parse_maps_line(text);
    if (!old || old->end <= begin) {
      at->second = text;
      ++at;
      continue;
    }
    at = lines.erase(at);
    if (old->begin < begin) lines[old->begin] = part_of_line(*old, old->begin, begin);
    if (end < old->end) lines[end] = part_of_line(*old, end, old->end);
  }
}

}  // namespace

std::string maps_line_of(const MmapEvent& map) {
  const bool is_file = map.path.starts_with('/') && !map.path.starts_with("//");
  return fmt::format("{:x}-{:x} r-xp {:08x} {:02x}:{:02x} {} {}", map.address.value,
                     map.address.value + map.size_bytes, map.offset_bytes, map.major, map.minor,
                     map.inode, is_file ? map.path : "");
}

bool ToldMaps::matters(const MapsLine& line) const {
  if (line.has_file()) return true;
  if (!line.executable()) return false;
  for (auto at = first_over(lines_, line.begin); at != lines_.end() && at->first < line.end; ++at)
    if (const auto old = parse_maps_line(at->second); old && line.begin < old->end) return true;
  return former_.had_code_in({{line.begin}, {line.end}});
}

ToldMaps::Lines ToldMaps::new_code(std::string_view maps) const {
  Lines lines;
  while (!maps.empty()) {
    const std::string_view text = cut_line(maps);
    const auto line = parse_maps_line(text);
    if (!line || !line->executable() || !matters(*line)) continue;
    auto known = lines_.find(line->begin);
    if (known == lines_.end() || known->second != text) lines.emplace_back(text);
  }
  return lines;
}

ToldMaps::Ranges ToldMaps::put(const Lines& lines, Epoch next) {
  bool any = false;
  for (const std::string& text : lines) {
    const auto line = parse_maps_line(text);
    if (!line || !matters(*line)) continue;
    cut_out(lines_, line->begin, line->end);
    lines_[line->begin] = text;
    any = true;
  }
  return any ? former_.see(text_of_lines(lines_), next) : Ranges();
}

ToldMaps::Ranges ToldMaps::see(std::string_view maps, Epoch next) {
  KnownLines now;
  while (!maps.empty()) {
    const std::string_view text = cut_line(maps);
    if (const auto line = parse_maps_line(text); line && matters(*line)) now[line->begin] = text;
  }
  lines_ = std::move(now);
  return former_.see(text_of_lines(lines_), next);
}

}  // namespace tailtrace::perf
