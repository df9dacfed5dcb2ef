#include "plugin/engines/step/memory_map.h"

#include <algorithm>
#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

std::string_view take_word(std::string_view& line) {
  std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t end = std::min(line.find(' ', begin), line.size());
  std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// `begin-end perms offset device inode path`
std::optional<MemoryRegion> parse_line(std::string_view line) {
  std::string_view range = take_word(line), permissions = take_word(line);
  std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || permissions.size() < 4) return std::nullopt;
  auto begin = parse_hex(range.substr(0, dash)), end = parse_hex(range.substr(dash + 1));
  if (!begin || !end) return std::nullopt;
  MemoryRegion region;
  region.begin = {*begin};
  region.end = {*end};
  region.writable = permissions[1] == 'w';
  region.executable = permissions[2] == 'x';
  region.shared = permissions[3] == 's';
  std::string_view offset = take_word(line);
  region.offset_bytes = parse_hex(offset).value_or(0);
  region.backing.append(offset).append(" ");
  for (int i = 0; i < 2; ++i) region.backing.append(take_word(line)).append(" ");
  region.path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return region;
}

}  // namespace

MemoryMap MemoryMap::parse(std::string_view text) {
  MemoryMap map;
  map.text_ = text;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    if (auto region = parse_line(text.substr(0, end))) map.regions_.push_back(std::move(*region));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
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
