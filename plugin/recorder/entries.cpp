#include "plugin/recorder/entries.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "decoder/base/file.h"
#include "decoder/history/location.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/missing_place.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/recorder/branch_keeper.h"
#include "plugin/recorder/symbol_lookup.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxAuxv_bytes = 4096;
constexpr char kForms[] = "FUNCTION, MODULE`FUNCTION, FILE:LINE, MODULE+OFFSET or *ADDRESS";

using Entries = std::map<Address, std::string>;

bool is_code_of(const std::string& module, const Mapping& mapping) {
  return mapping.executable && mapping.has_file() && is_module(mapping.path, module);
}

// Before it is chosen something else is in the slot, as it is in the file.
Entries implementations_of(const NamedSymbol& indirect, std::int32_t pid) {
  Address chosen;
  std::array<std::uint8_t, sizeof chosen.value> bytes{};
  if (!indirect.slot.is_null() && read_process_memory(pid, indirect.slot, bytes) == bytes.size())
    chosen = Address{load<std::uint64_t>(bytes, 0)};
  const auto known = indirect.implementations.find(chosen);
  return known == indirect.implementations.end() ? indirect.implementations : Entries{*known};
}

Entries entries_in(const NamedSymbols& symbols, std::int32_t pid) {
  Entries entries;
  for (const NamedSymbol& symbol : symbols.found) {
    if (symbol.kind == NamedSymbol::Kind::kFunction)
      entries.emplace(symbol.address, symbol.name);
    else
      entries.merge(implementations_of(symbol, pid));
  }
  return entries;
}

// In a file: they are in each function that has code of the line.
std::set<std::uint64_t> line_entries_in(ModuleSymbols& file, const Location& line) {
  std::vector<std::uint64_t> functions;
  (void)file.each_function([&](const Function& function) {
    functions.push_back(function.entry.value);
    return true;
  });
  std::set<std::uint64_t> entries;
  for (std::uint64_t function : functions)
    for (std::uint64_t entry : file.line_entries(function, line.file, line.line))
      entries.insert(entry);
  return entries;
}

Result<Entries> entries_of_line(const Location& line, const std::vector<Mapping>& mappings) {
  ProcessSymbols symbols(mappings);
  Entries entries;
  for (const auto& [path, file] : symbols.modules()) {
    if (file == nullptr) continue;
    const auto mapped = std::ranges::find_if(
        mappings, [&](const Mapping& one) { return one.executable && one.path == path; });
    if (mapped == mappings.end()) continue;
    if (const auto bias = load_bias(file->file().segments(), mappings, *mapped))
      for (std::uint64_t entry : line_entries_in(*file, line))
        entries.emplace(Address{entry + *bias}, location_text(line));
  }
  if (!entries.empty()) return entries;
  Error error{ErrorCode::kUsage, fmt::format("cannot wait for `{}`", location_text(line)),
              "no function has code of it", kForms, ""};
  if (auto missing = missing_place(line, true, symbols)) {
    error.why = missing->what + ": " + missing->why;
    error.fix = missing->fix;
  }
  return fail(std::move(error));
}

std::uint64_t auxiliary_value(const Bytes& auxv, std::uint64_t type) {
  for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv.size(); at += sizeof(Elf64_auxv_t)) {
    auto entry = load<Elf64_auxv_t>(auxv, at);
    if (entry.a_type == type) return entry.a_un.a_val;
  }
  return 0;
}

}  // namespace

Result<Entries> entries_of(const std::string& name, std::int32_t pid,
                           const std::vector<Mapping>& mappings) {
  auto location = parse_location(name);
  if (!location) return fail(std::move(location.error()));
  if (location->address) return Entries{{*location->address, name}};
  if (location->line != 0) return entries_of_line(*location, mappings);
  if (location->name.empty() || !location->file.empty())
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "it is no name of a function", kForms);
  if (location->offset) {
    if (auto place = place_in_module(location->name, *location->offset, mappings))
      return Entries{{*place, name}};
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "no file of that name is mapped", kForms);
  }
  const NamedSymbols symbols = symbols_named({location->module, location->name}, mappings);
  if (Entries found = entries_in(symbols, pid); !found.empty()) return found;
  if (!symbols.found.empty())
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "it is chosen as the program starts, and what chooses it names none",
                "the name of the one that is chosen, MODULE+OFFSET or *ADDRESS");
  return fail(ErrorCode::kUsage, fmt::format("there is no function `{}`", name),
              "no symbol table of what is mapped has it",
              "MODULE`FUNCTION for one of a library that is loaded later");
}

std::optional<Address> place_in_module(const std::string& module, std::uint64_t offset,
                                       const std::vector<Mapping>& mappings) {
  for (const Mapping& mapping : mappings) {
    if (!is_code_of(module, mapping)) continue;
    auto file = ElfFile::open(mapping.file());
    const auto bias = file ? load_bias(file->segments(), mappings, mapping) : std::nullopt;
    if (bias) return Address{offset + *bias};
  }
  return std::nullopt;
}

bool awaits_module(const std::string& name, const std::vector<Mapping>& mappings) {
  const auto location = parse_location(name);
  return location && !location->module.empty() && !is_mapped(location->module, mappings);
}

Bytes auxiliary_vector_of(std::int32_t pid) {
  return read_file(fmt::format("/proc/{}/auxv", pid), kMaxAuxv_bytes).value_or(Bytes());
}

Address program_entry(std::int32_t pid) {
  return {auxiliary_value(auxiliary_vector_of(pid), AT_ENTRY)};
}

bool has_dynamic_linker(std::int32_t pid) {
  return auxiliary_value(auxiliary_vector_of(pid), AT_BASE) != 0;
}

// By the name that the C libraries have given it (glibc, musl).
Address loader_hook(const std::vector<Mapping>& mappings) {
  const NamedSymbols symbols = symbols_named({"", "_dl_debug_state"}, mappings);
  return symbols.is_exact ? symbols.found.front().address : Address();
}

bool is_mapped(const std::string& module, const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings,
                             [&](const Mapping& mapping) { return is_code_of(module, mapping); });
}

}  // namespace tailtrace
