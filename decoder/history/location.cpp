#include "decoder/history/location.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "decoder/base/text.h"

namespace tailtrace {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

tl::unexpected<Error> unreadable(std::string_view text, std::string why) {
  return fail(ErrorCode::kUsage, fmt::format("cannot read the location `{}`", text.substr(0, 200)),
              std::move(why),
              "write FUNCTION, FILE:LINE, *ADDRESS or MODULE+OFFSET, as to a debugger");
}

// The last ':' that is not half of a "::", nor of "f[abi:cxx11]".
std::size_t find_colon(std::string_view text) {
  for (std::size_t i = text.size(); i-- != 0;) {
    if (text[i] != ':' || text.substr(0, i).ends_with("[abi")) continue;
    if (i == 0 || text[i - 1] != ':') return i;
    while (i != 0 && text[i - 1] == ':') --i;
  }
  return std::string_view::npos;
}

Result<Location> parse_address(std::string_view text, std::string_view digits) {
  std::optional<std::uint64_t> address = parse_number(digits);
  if (!address) return unreadable(text, fmt::format("`{}` is no address", digits));
  Location location;
  location.address = Address{*address};
  return location;
}

// "NAME+0x12"; nothing when it is not of that form. An operator's name may end with a plus.
std::optional<Location> parse_offset(std::string_view text) {
  std::size_t plus = text.rfind('+');
  if (plus == std::string_view::npos || plus == 0) return std::nullopt;
  std::optional<std::uint64_t> offset = parse_number(trim(text.substr(plus + 1)));
  std::string_view name = trim(text.substr(0, plus));
  if (!offset || name.empty() || name.front() == '*' || name.find('`') != name.npos ||
      std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    return std::nullopt;
  Location location;
  location.name = name;
  location.offset = offset;
  return location;
}

Result<Location> parse_in_file(std::string_view text, std::size_t colon) {
  Location location;
  location.file = trim(text.substr(0, colon));
  std::string_view rest = trim(text.substr(colon + 1));
  if (location.file.empty() || location.file.back() == ':')
    return unreadable(text, "there is no file before the colon");
  if (rest.empty()) return unreadable(text, "there is nothing behind the colon");
  if (!is_digits(rest)) {
    location.name = rest;
    return location;
  }
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), location.line);
  if (error != std::errc() || location.line == 0)
    return unreadable(text, fmt::format("no file has a line {}", rest));
  return location;
}

}  // namespace

Result<Location> parse_location(std::string_view whole) {
  std::string_view text = trim(whole);
  if (text.empty()) return unreadable(text, "it is empty");
  if (text.size() > kMaxLocation_bytes || text.find('\0') != std::string_view::npos)
    return unreadable(text, "no name is like that");
  if (text.front() == '*') {
    std::string_view inside = trim(text.substr(1));
    if (std::optional<Location> location = parse_offset(inside)) return *location;
    return parse_address(text, inside);
  }
  if (text.starts_with("0x") || text.starts_with("0X")) return parse_address(text, text);
  if (is_digits(text))
    return unreadable(text, "a number alone may be a line or an address: nobody knows of which");
  if (std::size_t tick = text.find('`'); tick != std::string_view::npos) {
    Location location;
    location.module = trim(text.substr(0, tick));
    location.name = trim(text.substr(tick + 1));
    if (location.module.empty() || location.name.empty() ||
        location.name.find('`') != std::string::npos)
      return unreadable(text, "a module and a function belong around the `");
    return location;
  }
  if (std::optional<Location> location = parse_offset(text)) return *location;
  std::size_t colon = find_colon(text);
  if (colon != std::string_view::npos) return parse_in_file(text, colon);
  Location location;
  location.name = text;
  return location;
}

std::string location_text(const Location& location) {
  if (location.address) return fmt::format("*{:#x}", location.address->value);
  if (location.line != 0) return fmt::format("{}:{}", location.file, location.line);
  // "a.cc: ::f": without the space it would be a name alone.
  const char* space = location.name.starts_with(':') ? " " : "";
  if (!location.file.empty()) return fmt::format("{}:{}{}", location.file, space, location.name);
  if (!location.module.empty()) return fmt::format("{}`{}", location.module, location.name);
  if (location.offset) return fmt::format("{}+{:#x}", location.name, *location.offset);
  return location.name;
}

bool means(const Location& location, const Function& function) {
  // Only the debug information has a name of the resolver's own.
  const bool is_of_chosen = function.is_resolver &&
                            (function.debug_name.empty() || function.symbol_name == location.name);
  return !is_of_chosen && is_called(function, location.name) &&
         (location.module.empty() || is_module(function.module, location.module)) &&
         (location.file.empty() || ends_path(function.source_file, location.file));
}

bool ends_path(std::string_view path, std::string_view end) {
  if (end.empty() || !path.ends_with(end)) return false;
  return path.size() == end.size() || end.front() == '/' ||
         path[path.size() - end.size() - 1] == '/';
}

bool is_module(std::string_view path, std::string_view name) {
  while (!ends_path(path, name)) {
    const std::size_t dot = path.find_last_not_of("0123456789");
    if (dot == path.npos || dot + 1 == path.size() || path[dot] != '.') return false;
    path = path.substr(0, dot);
  }
  return true;
}

}  // namespace tailtrace
