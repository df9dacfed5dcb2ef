#include "plugin/recorder/entries.h"

#include <elf.h>
#include <fmt/format.h>

#include <set>
#include <span>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/history/location.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/indirect_functions.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxAuxv_bytes = 4096;
constexpr char kForms[] = "FUNCTION, MODULE`FUNCTION, MODULE+OFFSET or *ADDRESS";

using Entries = std::map<Address, std::string>;

// What a file calls by a name, in its own addresses.
class Called {
 public:
  explicit Called(const std::string& name) : name_(name) {}

  void look_into(const ElfFile& file, const ElfFile& code) {
    const std::vector<ElfSymbol> all = file.symbols();
    std::vector<ElfSymbol> exact, alike;
    for (const ElfSymbol& symbol : all) {
      if (symbol.name.ends_with("@plt")) continue;
      Function function;
      function.symbol_name = symbol.name;
      function.name = demangle(symbol.name);
      const bool is_exact = has_name(function, name_);
      if (!is_exact && !is_called(function, name_)) continue;
      (is_exact ? exact : alike).push_back(symbol);
      is_indirect_ = is_indirect_ || symbol.is_resolver;
    }
    add(exact, all, code, exact_);
    add(alike, all, code, alike_);
  }

  const std::map<std::uint64_t, std::string>& exact() const { return exact_; }
  const std::map<std::uint64_t, std::string>& alike() const { return alike_; }
  // Whether it is a resolver's as well.
  bool is_indirect() const { return is_indirect_; }

 private:
  static void add(const std::vector<ElfSymbol>& symbols, const std::vector<ElfSymbol>& all,
                  const ElfFile& code, std::map<std::uint64_t, std::string>& found) {
    for (const ElfSymbol& symbol : symbols)
      if (!symbol.is_resolver) found.emplace(symbol.value, demangle(symbol.name));
    for (const IndirectFunction& one : indirect_functions(code, symbols))
      if (!found.contains(one.implementation))
        found.emplace(one.implementation, name_at(one.implementation, all));
  }

  // Empty where it has none.
  static std::string name_at(std::uint64_t address, const std::vector<ElfSymbol>& all) {
    for (const ElfSymbol& symbol : all)
      if (symbol.value == address && !symbol.is_resolver) return demangle(symbol.name);
    return {};
  }

  const std::string& name_;
  std::map<std::uint64_t, std::string> exact_, alike_;
  bool is_indirect_ = false;
};

// Of a process.
class EntryFinder {
 public:
  EntryFinder(Location location, const std::vector<Mapping>& mappings)
      : location_(std::move(location)), mappings_(mappings) {}

  Entries find() {
    std::set<std::string> seen;
    for (const Mapping& mapping : mappings_)
      if (mapping.executable && mapping.has_file() && is_meant(mapping) &&
          seen.insert(mapping.file()).second)
        look_into(mapping);
    return exact_.empty() ? alike_ : exact_;
  }
  // Whether some file has a resolver of that name.
  bool is_indirect() const { return is_indirect_; }

 private:
  bool is_meant(const Mapping& mapping) const {
    const std::string& module = location_.offset ? location_.name : location_.module;
    return module.empty() || ends_path(mapping.path, module);
  }

  void look_into(const Mapping& mapping) {
    auto file = ElfFile::open(mapping.file());
    auto module = ModuleSymbols::open(mapping.file());
    if (!file || !module) return;
    const auto bias = load_bias(file->segments(), mappings_, mapping);
    if (!bias) return;
    if (location_.offset) {
      exact_.emplace(Address{*location_.offset + *bias}, location_text(location_));
      return;
    }
    Called called(location_.name);
    called.look_into(*file, *file);
    if (const std::string debug = (*module)->debug_path();
        !debug.empty() && debug != mapping.file())
      if (auto separate = ElfFile::open(debug)) called.look_into(*separate, *file);
    add(called.exact(), mapping, *bias, exact_);
    add(called.alike(), mapping, *bias, alike_);
    is_indirect_ = is_indirect_ || called.is_indirect();
  }

  static void add(const std::map<std::uint64_t, std::string>& called, const Mapping& mapping,
                  std::uint64_t bias, Entries& found) {
    for (const auto& [address, name] : called)
      found.emplace(
          Address{address + bias},
          name.empty() ? fmt::format("{}+{:#x}", base_name(mapping.path), address) : name);
  }

  const Location location_;
  const std::vector<Mapping>& mappings_;
  Entries exact_, alike_;
  bool is_indirect_ = false;
};

}  // namespace

Result<Entries> entries_of(const std::string& name, const std::vector<Mapping>& mappings) {
  auto location = parse_location(name);
  if (!location) return fail(std::move(location.error()));
  if (location->address) return Entries{{*location->address, name}};
  if (location->name.empty() || location->line != 0 || !location->file.empty())
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "it is no name of a function", kForms);
  const bool has_offset = location->offset.has_value();
  EntryFinder finder(std::move(*location), mappings);
  Entries found = finder.find();
  if (!found.empty()) return found;
  if (has_offset)
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "no file of that name is mapped", kForms);
  if (finder.is_indirect())
    return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", name),
                "it is chosen as the program starts, and what chooses it names none",
                "the name of the one that is chosen, MODULE+OFFSET or *ADDRESS");
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
