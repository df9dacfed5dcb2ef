#include "plugin/engines/step/memory_map.h"

#include <algorithm>
#include <optional>

#include "decoder/code/maps_line.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

std::optional<MemoryRegion> parse_line(std::string_view line) {
  const std::optional<MapsLine> parsed = parse_maps_line(line);
  if (!parsed) return std::nullopt;
  return MemoryRegion{.begin = {parsed->begin},
                      .end = {parsed->end},
                      .writable = parsed->writable(),
                      .executable = parsed->executable(),
                      .shared = parsed->shared(),
                      .backing = std::string(parsed->backing),
                      .file_id = std::string(parsed->file_id),
                      .offset_bytes = parsed->file_offset_bytes,
                      .path = std::string(parsed->name)};
}

}  // namespace

MemoryMap MemoryMap::parse(std::string_view text) {
  MemoryMap map;
  map.text_ = text;
  while (!text.empty())
    if (auto region = parse_line(cut_line(text))) map.regions_.push_back(std::move(*region));
  std::sort(map.regions_.begin(), map.regions_.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return map;
}

MemoryMap MemoryMap::of_process(int pid) {
  auto maps = process_maps(pid);
  return maps ? parse(*maps) : MemoryMap();
}

const MemoryRegion* MemoryMap::find(Address address) const {
  auto it = std::upper_bound(regions_.begin(), regions_.end(), address,
                             [](Address a, const MemoryRegion& r) { return a < r.begin; });
  if (it == regions_.begin() || (--it)->end <= address) return nullptr;
  return &*it;
}

bool MemoryMap::is_stable_code(Address address) const {
  const MemoryRegion* region = find(address);
  return region != nullptr && region->executable && !region->writable && !region->shared;
}

}  // namespace tailtrace
