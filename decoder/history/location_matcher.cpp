#include "decoder/history/location_matcher.h"

#include <algorithm>

namespace tailtrace {
namespace {

// A longer function is not looked through for the first instruction of a line.
constexpr std::uint64_t kMaxFunction_bytes = 1 << 20;

}  // namespace

bool LocationMatcher::holds(Address address) {
  if (location_.address) return *location_.address == address;
  auto [known, added] = held_.try_emplace(address, false);
  if (added) known->second = is_of(address);
  return known->second;
}

bool LocationMatcher::is_entry(Address address) {
  if (!holds(address)) return false;
  if (location_.address || location_.offset) return true;
  auto [known, added] = entries_.try_emplace(address, false);
  if (added) known->second = find_entry(address);
  return known->second;
}

bool LocationMatcher::is_of(Address address) {
  if (location_.offset) return is_at_offset(address);
  if (location_.line != 0) return is_line(address);
  const Function& function = symbols_.function_at(address);
  return has_name(function, location_.name) &&
         (location_.module.empty() || ends_path(function.module, location_.module)) &&
         (location_.file.empty() || ends_path(function.source_file, location_.file));
}

bool LocationMatcher::is_line(Address address) const {
  std::optional<SourceLine> line = symbols_.line_at(address);
  return line && line->line == location_.line && ends_path(line->file, location_.file);
}

bool LocationMatcher::is_at_offset(Address address) {
  const Function& function = symbols_.function_at(address);
  if (ends_path(function.module, location_.name))
    return symbols_.address_in_file(address) == location_.offset;
  return has_name(function, location_.name) && !function.entry.is_null() &&
         address == function.entry + *location_.offset;
}

bool LocationMatcher::find_entry(Address address) {
  const Function& function = symbols_.function_at(address);
  if (location_.line == 0) return function.entry == address;
  auto [first, added] = first_of_line_.try_emplace(function.begin);
  if (added) {
    Address end = std::min(function.end, function.begin + kMaxFunction_bytes);
    Address at = function.begin;
    while (at < end && !is_line(at)) ++at.value;
    if (at < end) first->second = at;
  }
  return first->second == address;
}

}  // namespace tailtrace
