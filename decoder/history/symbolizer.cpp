#include "decoder/history/symbolizer.h"

#include <fmt/format.h>

namespace tailtrace {

std::string place_text(Symbolizer& symbols, Address address) {
  return place_text(symbols.function_at(address), address);
}

std::string place_text(const Function& function, Address address) {
  if (function.name.empty()) return {};
  if (function.entry.is_null() || function.entry == address) return function.name;
  if (function.entry < address)
    return fmt::format("{}+{:#x}", function.name, address - function.entry);
  return fmt::format("{}-{:#x}", function.name, function.entry - address);
}

std::string_view base_name(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace tailtrace
