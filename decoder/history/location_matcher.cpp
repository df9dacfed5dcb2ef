#include "decoder/history/location_matcher.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace {

bool LocationMatcher::holds(Address address, Epoch when) {
  if (location_.address) return *location_.address == address;
  const Place place{symbols_.function_in(address, when), address, when};
  if (is_of_functions())
    return is_function(place.function, when) ||
           std::ranges::any_of(places_in(place), [address](const InlinedPlace& inlined) {
             return inlined.holds(address);
           });
  auto [known, added] = held_.try_emplace({&place.function, address}, false);
  if (added) known->second = location_.offset ? is_at_offset(place) : is_line(place);
  return known->second;
}

bool LocationMatcher::is_entry(Address address, Epoch when) {
  if (location_.address || location_.offset) return holds(address, when);
  const Place place{symbols_.function_in(address, when), address, when};
  if (is_of_functions())
    return (place.function.entry == address && is_function(place.function, when)) ||
           begins_nameless(place) ||
           std::ranges::any_of(places_in(place), [address](const InlinedPlace& inlined) {
             return inlined.function.entry == address;
           });
  auto [known, added] = entries_.try_emplace({&place.function, address}, false);
  if (added) known->second = begins_line(place);
  return known->second;
}

bool LocationMatcher::is_function(const Function& function, Epoch when) {
  auto [known, added] = functions_.try_emplace(&function, false);
  if (added) known->second = means(location_, function) || is_also_named(function.entry, when);
  return known->second;
}

bool LocationMatcher::is_also_named(Address entry, Epoch when) const {
  return !entry.is_null() &&
         std::ranges::any_of(symbols_.also_named(entry, when),
                             [this](const Function& other) { return means(location_, other); });
}

// Symbol tables need not name what a program chooses as it starts, and stripped ones do not.
bool LocationMatcher::begins_nameless(const Place& place) {
  if (place.function.known()) return false;
  auto [known, added] = entries_.try_emplace({&place.function, place.address}, false);
  if (added) known->second = is_also_named(place.address, place.when);
  return known->second;
}

// Where the named function was inlined into the one that the address is of.
const std::vector<InlinedPlace>& LocationMatcher::places_in(const Place& place) {
  auto [known, added] = places_.try_emplace(&place.function);
  if (!added) return known->second;
  known->second = symbols_.inlined_into(place.address, place.when);
  std::erase_if(known->second,
                [this](const InlinedPlace& place) { return !means(location_, place.function); });
  return known->second;
}

bool LocationMatcher::is_line(const Place& place) const {
  std::optional<SourceLine> line = symbols_.line_at(place.address, place.when);
  return line && line->line == location_.line && ends_path(line->file, location_.file);
}

bool LocationMatcher::is_at_offset(const Place& place) {
  const Function& function = place.function;
  if (is_module(function.module, location_.name))
    return symbols_.address_in_file(place.address, place.when) == location_.offset;
  return !function.entry.is_null() && place.address == function.entry + *location_.offset &&
         is_function(function, place.when);
}

bool LocationMatcher::begins_line(const Place& place) {
  auto [known, added] = line_entries_.try_emplace(&place.function);
  if (added)
    known->second =
        symbols_.line_entries(place.address, location_.file, location_.line, place.when);
  return std::ranges::find(known->second, place.address) != known->second.end();
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
