#include "plugin/recorder/entries.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/history/location.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxAuxv_bytes = 4096;

bool is_named(const ElfSymbol& symbol, const std::string& name) {
  if (symbol.name.ends_with("@plt")) return false;
  Function function;
  function.symbol_name = symbol.name;
  function.name = demangle(symbol.name);
  return has_name(function, name);
}

void add_entries(std::span<const Mapping> mappings, const Mapping& mapping, const std::string& name,
                 std::set<Address>& found) {
  auto file = ElfFile::open(mapping.path);
  auto module = ModuleSymbols::open(mapping.path);
  if (!file || !module) return;
  auto bias = load_bias(file->segments(), mappings, mapping);
  if (!bias) return;
  auto add = [&](const ElfFile& from) {
    for (const ElfSymbol& symbol : from.symbols())
      if (is_named(symbol, name)) found.insert({symbol.value + *bias});
  };
  add(*file);
  if (const std::string debug = (*module)->debug_path(); !debug.empty() && debug != mapping.path)
    if (auto separate = ElfFile::open(debug)) add(*separate);
}

}  // namespace

Result<std::vector<Address>> entries_of(const std::string& name, std::string_view maps) {
  auto location = parse_location(name);
  if (!location) return fail(std::move(location.error()));
  if (location->address) return std::vector<Address>{*location->address};
  if (location->name.empty() || location->line != 0 || !location->file.empty() || location->offset)
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "it is no name of a function", "FUNCTION, MODULE`FUNCTION or *ADDRESS");
  std::set<Address> found;
  std::set<std::string> seen;
  const std::vector<Mapping> mappings = parse_maps(maps);
  for (const Mapping& mapping : mappings) {
    const bool is_module = location->module.empty() || ends_path(mapping.path, location->module);
    if (mapping.executable && mapping.has_file() && is_module && seen.insert(mapping.path).second)
      add_entries(mappings, mapping, location->name, found);
  }
  if (!found.empty()) return std::vector<Address>(found.begin(), found.end());
  return fail(ErrorCode::kUsage, fmt::format("there is no function `{}`", name),
              "no symbol table of what is mapped has it");
}

Bytes auxiliary_vector_of(std::int32_t pid) {
  return read_file(fmt::format("/proc/{}/auxv", pid), kMaxAuxv_bytes).value_or(Bytes());
}

Address program_entry(std::int32_t pid) {
  const Bytes auxv = auxiliary_vector_of(pid);
  for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv.size(); at += sizeof(Elf64_auxv_t)) {
    auto entry = load<Elf64_auxv_t>(auxv, at);
    if (entry.a_type == AT_ENTRY) return {entry.a_un.a_val};
  }
  return {};
}

}  // namespace tailtrace
