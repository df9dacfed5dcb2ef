#include "decoder/symbols/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"
#include "decoder/base/text.h"
#include "decoder/code/elf_code.h"
#include "decoder/code/former_maps.h"
#include "decoder/code/maps_line.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

std::optional<Mapping> parse_line(std::string_view line) {
  const std::optional<MapsLine> parsed = parse_maps_line(line);
  if (!parsed || parsed->name.empty()) return std::nullopt;
  // A file that was replaced on disk: what is there now is another one.
  std::string path(parsed->name);
  if (path.ends_with(kDeletedWord)) path = "deleted: " + path;
  return Mapping{{parsed->begin},
                 {parsed->end},
                 parsed->file_offset_bytes,
                 parsed->executable(),
                 std::move(path)};
}

// Where the file's page that begins at `file_offset_bytes` lies, before it is moved by a bias;
// nothing when it is none of the segment's. Mappings begin at the page that a segment begins in.
std::optional<std::uint64_t> place_of(const ElfSegment& segment, std::uint64_t file_offset_bytes) {
  const std::uint64_t slack = segment.file_offset_bytes % kPage_bytes;
  const std::uint64_t begin = segment.file_offset_bytes - slack;
  if (file_offset_bytes < begin || file_offset_bytes - begin >= segment.size_bytes + slack)
    return std::nullopt;
  return segment.address - slack + (file_offset_bytes - begin);
}

// The file's mappings beside this one, without others between them: more than a loader makes.
std::span<const Mapping> neighbours(std::span<const Mapping> mappings, const Mapping& mapping) {
  constexpr std::size_t kFarthest = 64;
  auto is_other = [&](const Mapping& m) { return m.file() != mapping.file(); };
  const auto at = static_cast<std::size_t>(&mapping - mappings.data());
  auto before = mappings.first(at), behind = mappings.subspan(at);
  before = before.last(std::min(before.size(), kFarthest));
  behind = behind.first(std::min(behind.size(), kFarthest));
  const auto first = std::ranges::find_if(before.rbegin(), before.rend(), is_other).base();
  return {first, std::ranges::find_if(behind, is_other)};
}

std::size_t count_in_place(std::span<const ElfSegment> segments, std::span<const Mapping> mappings,
                           std::uint64_t bias) {
  return static_cast<std::size_t>(std::ranges::count_if(mappings, [&](const Mapping& mapping) {
    return std::ranges::any_of(segments, [&](const ElfSegment& segment) {
      return place_of(segment, mapping.file_offset_bytes) == mapping.begin.value - bias;
    });
  }));
}

}  // namespace

Result<std::string> process_maps(std::int32_t pid) {
  return read_file(fmt::format("/proc/{}/maps", pid), kMaxMaps_bytes).map([](const Bytes& text) {
    return std::string(as_text(text));
  });
}

std::vector<Mapping> parse_maps(std::string_view maps) {
  std::vector<Mapping> mappings;
  while (!maps.empty() && mappings.size() < kMaxMappings) {
    if (std::optional<Mapping> mapping = parse_line(cut_line(maps)))
      mappings.push_back(std::move(*mapping));
  }
  std::stable_sort(mappings.begin(), mappings.end(),
                   [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  std::vector<Mapping> apart;
  for (Mapping& mapping : mappings)
    if (apart.empty() || apart.back().end <= mapping.begin) apart.push_back(std::move(mapping));
  return apart;
}

const Mapping* mapping_at(std::span<const Mapping> mappings, Address address) {
  const auto after = std::ranges::upper_bound(mappings, address, {}, &Mapping::begin);
  if (after == mappings.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

const Mapping* FormerModule::find(Address address) const {
  auto found = std::ranges::find_if(
      mappings, [address](const Mapping& m) { return m.begin <= address && address < m.end; });
  return found == mappings.end() ? nullptr : &*found;
}

std::vector<FormerModule> parse_former_maps(std::string_view former) {
  std::vector<FormerModule> modules;
  for (std::size_t count = 0; !former.empty() && count < kMaxMappings; ++count) {
    std::string_view line = cut_line(former);
    if (!line.starts_with(kFormerWord)) continue;
    line.remove_prefix(kFormerWord.size());
    std::optional<Epoch> until;
    if (const auto number = parse_number(cut_word(line)); number && *number <= ~0u)
      until = Epoch{static_cast<std::uint32_t>(*number)};
    std::optional<Mapping> mapping = parse_line(line);
    if (!mapping) continue;
    const bool is_next = !modules.empty() && modules.back().until == until &&
                         modules.back().mappings.back().path == mapping->path &&
                         modules.back().mappings.back().end <= mapping->begin;
    if (!is_next) modules.push_back({until, {}});
    modules.back().mappings.push_back(std::move(*mapping));
  }
  return modules;
}

std::optional<std::uint64_t> load_bias(std::span<const ElfSegment> segments,
                                       std::span<const Mapping> mappings, const Mapping& mapping) {
  const std::span<const Mapping> nearby = neighbours(mappings, mapping);
  std::optional<std::uint64_t> bias;
  std::pair<std::size_t, bool> most;
  for (const ElfSegment& segment : segments) {
    const auto place = place_of(segment, mapping.file_offset_bytes);
    if (!place) continue;
    const std::uint64_t candidate = mapping.begin.value - *place;
    const std::pair fit{count_in_place(segments, nearby, candidate),
                        segment.executable == mapping.executable};
    if (bias && fit < most) continue;
    bias = candidate;
    most = fit;
  }
  return bias;
}

std::string maps_of_module(const std::string& path, Address load_address) {
  Result<ElfFile> file = ElfFile::open(path);
  if (!file) return {};
  if (file->segments().empty()) return {};
  const std::uint64_t bias = load_bias(load_address, file->segments().front().address);
  std::string text;
  for (const ElfSegment& segment : file->segments()) {
    std::uint64_t slack = segment.file_offset_bytes % kPage_bytes;
    std::uint64_t begin = segment.address - slack + bias;
    std::uint64_t end = (begin + slack + segment.size_bytes + kPage_bytes - 1) & ~(kPage_bytes - 1);
    text += fmt::format("{:x}-{:x} r-xp {:08x} 00:00 0 {}\n", begin, end,
                        segment.file_offset_bytes - slack, path);
  }
  return text;
}

}  // namespace tailtrace
