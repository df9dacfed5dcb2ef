#include "decoder/symbols/split_unit.h"

#include <dwarf.h>

#include <filesystem>

namespace tailtrace {
namespace {

// libdw opens what it finds, and a pipe or a device could keep it for ever.
bool is_file_or_nothing(const std::filesystem::path& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

}  // namespace

std::string own_text(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_formstring(dwarf_attr(&die, name, &attribute));
  return text == nullptr ? "" : text;
}

bool is_skeleton(Dwarf_Die& unit) {
  std::uint8_t type = 0;
  return dwarf_cu_info(unit.cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr) == 0 &&
         type == DW_UT_skeleton;
}

std::string split_file(Dwarf_Die& skeleton) {
  const std::string name = own_text(skeleton, DW_AT_dwo_name);
  return name.empty() ? own_text(skeleton, DW_AT_GNU_dwo_name) : name;
}

std::optional<Dwarf_Die> split_unit(Dwarf_Die& skeleton, const std::string& folder) {
  const std::filesystem::path name = split_file(skeleton);
  if (name.empty() || !is_file_or_nothing(folder / name) ||
      !is_file_or_nothing(own_text(skeleton, DW_AT_comp_dir) / name))
    return std::nullopt;
  Dwarf_Die split{};
  const int found =
      dwarf_cu_info(skeleton.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr);
  if (found != 0 || split.addr == nullptr) return std::nullopt;
  return split;
}

}  // namespace tailtrace
