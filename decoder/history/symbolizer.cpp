#include "decoder/history/symbolizer.h"

#include <fmt/format.h>

namespace tailtrace {

std::string place_text(Symbolizer& symbols, Address address, Epoch when) {
  const Function& function = symbols.function_in(address, when);
  if (function.name.empty()) {
    const std::optional<std::uint64_t> in_file = symbols.address_in_file(address, when);
    if (function.module.empty() || !in_file) return {};
    return fmt::format("{}+{:#x}", base_name(function.module), *in_file);
  }
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
