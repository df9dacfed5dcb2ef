#include "decoder/history/location_matcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace {

bool LocationMatcher::holds(Address address, Epoch when) {
  if (location_.address) return *location_.address == address;
  if (is_of_functions()) {
    const Function& function = symbols_.function_in(address, when);
    return is_function(function) ||
           std::ranges::any_of(places_in(function, address), [address](const InlinedPlace& place) {
             return place.holds(address);
           });
  }
  auto [known, added] = held_.try_emplace(address, false);
  if (added) known->second = location_.offset ? is_at_offset(address) : is_line(address);
  return known->second;
}

bool LocationMatcher::is_entry(Address address, Epoch when) {
  if (is_of_functions()) {
    const Function& function = symbols_.function_in(address, when);
    return (function.entry == address && is_function(function)) ||
           begins_nameless(function, address) ||
           std::ranges::any_of(places_in(function, address), [address](const InlinedPlace& place) {
             return place.function.entry == address;
           });
  }
  if (location_.address || location_.offset) return holds(address, when);
  auto [known, added] = entries_.try_emplace(address, false);
  if (added) known->second = begins_line(address);
  return known->second;
}

bool LocationMatcher::is_function(const Function& function) {
  auto [known, added] = functions_.try_emplace(&function, false);
  if (added) known->second = means(location_, function) || is_also_named(function.entry);
  return known->second;
}

bool LocationMatcher::is_also_named(Address entry) const {
  return !entry.is_null() &&
         std::ranges::any_of(symbols_.also_named(entry),
                             [this](const Function& other) { return means(location_, other); });
}

// Symbol tables need not name what a program chooses as it starts, and stripped ones do not.
bool LocationMatcher::begins_nameless(const Function& function, Address address) {
  if (function.known()) return false;
  auto [known, added] = entries_.try_emplace(address, false);
  if (added) known->second = is_also_named(address);
  return known->second;
}

// Where the named function was inlined into the one that the address is of.
const std::vector<InlinedPlace>& LocationMatcher::places_in(const Function& function,
                                                            Address address) {
  auto [known, added] = places_.try_emplace(&function);
  if (!added) return known->second;
  known->second = symbols_.inlined_into(address);
  std::erase_if(known->second,
                [this](const InlinedPlace& place) { return !means(location_, place.function); });
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
  return !function.entry.is_null() && address == function.entry + *location_.offset &&
         is_function(function);
}

bool LocationMatcher::begins_line(Address address) {
  auto [known, added] = line_entries_.try_emplace(symbols_.function_at(address).begin);
  if (added) known->second = symbols_.line_entries(address, location_.file, location_.line);
  return std::ranges::find(known->second, address) != known->second.end();
}

Result<LocationMatcher> functions_named(std::string_view text, Symbolizer& symbols) {
  Result<Location> location = parse_location(text);
  if (!location) return fail(std::move(location.error()));
  LocationMatcher matcher(std::move(*location), symbols);
  if (!matcher.is_of_functions())
    return fail(ErrorCode::kUsage, fmt::format("`{}` is called by nobody", text),
                "it is no function, and no range",
                "tailtrace hits tells when a line or an address was reached");
  return matcher;
}

}  // namespace tailtrace
