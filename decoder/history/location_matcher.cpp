#include "decoder/history/location_matcher.h"

#include <algorithm>

namespace tailtrace {
namespace {

// A longer function is not looked through for the first instruction of a line.
constexpr std::uint64_t kMaxFunction_bytes = 1 << 20;

}  // namespace

bool LocationMatcher::holds(Address address, Epoch when) {
  if (location_.address) return *location_.address == address;
  if (is_of_functions()) return is_function(symbols_.function_in(address, when));
  auto [known, added] = held_.try_emplace(address, false);
  if (added) known->second = location_.offset ? is_at_offset(address) : is_line(address);
  return known->second;
}

bool LocationMatcher::is_entry(Address address, Epoch when) {
  if (!holds(address, when)) return false;
  if (is_of_functions()) return symbols_.function_in(address, when).entry == address;
  if (location_.address || location_.offset) return true;
  auto [known, added] = entries_.try_emplace(address, false);
  if (added) known->second = begins_line(address);
  return known->second;
}

bool LocationMatcher::is_function(const Function& function) {
  auto [known, added] = functions_.try_emplace(&function, false);
  if (added)
    known->second = has_name(function, location_.name) &&
                    (location_.module.empty() || ends_path(function.module, location_.module)) &&
                    (location_.file.empty() || ends_path(function.source_file, location_.file));
  return known->second;
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

bool LocationMatcher::begins_line(Address address) {
  const Function& function = symbols_.function_at(address);
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
