#include "plugin/recorder/symbol_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decoder/history/function_name.h"
#include "decoder/history/location.h"
#include "decoder/history/symbolizer.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/indirect_functions.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {
namespace {

using Kind = NamedSymbol::Kind;

// In the files of a process.
class Lookup {
 public:
  Lookup(const SymbolQuery& query, const std::vector<Mapping>& mappings)
      : query_(query), mappings_(mappings) {}

  NamedSymbols look() {
    std::set<std::string> seen;
    for (const Mapping& mapping : mappings_)
      if (mapping.executable && mapping.has_file() &&
          (query_.module.empty() || is_module(mapping.path, query_.module)) &&
          seen.insert(mapping.file()).second)
        look_into(mapping);
    return exact_.empty() ? NamedSymbols{alike_, false} : NamedSymbols{exact_, true};
  }

 private:
  void look_into(const Mapping& mapping) {
    auto module = ModuleSymbols::open(mapping.file());
    if (!module) return;
    const ElfFile& file = (*module)->file();
    const auto bias = load_bias(file.segments(), mappings_, mapping);
    if (!bias) return;
    mapping_ = &mapping;
    bias_ = *bias;
    look_into(file, file);
    if (const ElfFile* separate = (*module)->debug_file()) look_into(*separate, file);
  }

  // A separate file has the symbols of another one's code.
  void look_into(const ElfFile& file, const ElfFile& code) {
    const std::vector<ElfSymbol> functions = file.symbols();
    for (const ElfSymbol& symbol : functions) {
      if (symbol.name.ends_with("@plt")) continue;
      NamedSymbol* found = note(symbol, symbol.is_resolver ? Kind::kResolver : Kind::kFunction);
      if (found != nullptr && symbol.is_resolver)
        add_implementations(*found, symbol, functions, code);
    }
    if (!query_.with_variables) return;
    for (const ElfSymbol& symbol : file.variables()) (void)note(symbol, Kind::kVariable);
  }

  // Null where it is none that is looked for, or is known by another of its names.
  NamedSymbol* note(const ElfSymbol& symbol, Kind kind) {
    Function function;
    function.symbol_name = symbol.name;
    function.name = demangle(symbol.name);
    const bool is_exact = has_name(function, query_.name);
    if (!is_exact && !is_called(function, query_.name)) return nullptr;
    std::vector<NamedSymbol>& noted = is_exact ? exact_ : alike_;
    const Address address{symbol.value + bias_};
    auto is_it = [&](const NamedSymbol& one) { return one.address == address && one.kind == kind; };
    if (std::ranges::any_of(noted, is_it)) return nullptr;
    const bool is_apart = symbol.name.find('.') != symbol.name.npos && symbol.name != query_.name;
    return &noted.emplace_back(NamedSymbol{kind,
                                           address,
                                           symbol.size_bytes,
                                           function.name,
                                           mapping_->path,
                                           is_apart,
                                           symbol.is_old,
                                           {},
                                           {}});
  }

  void add_implementations(NamedSymbol& resolver, const ElfSymbol& symbol,
                           const std::vector<ElfSymbol>& functions, const ElfFile& code) const {
    for (const IndirectFunction& one : indirect_functions(code, {&symbol, 1}))
      resolver.implementations.emplace(Address{one.implementation + bias_},
                                       name_at(one.implementation, functions));
    const auto slots = chosen_slots(code);
    if (const auto slot = slots.find(symbol.value); slot != slots.end())
      resolver.slot = Address{slot->second + bias_};
  }

  std::string name_at(std::uint64_t address, const std::vector<ElfSymbol>& functions) const {
    for (const ElfSymbol& symbol : functions)
      if (symbol.value == address && !symbol.is_resolver) return demangle(symbol.name);
    return fmt::format("{}+{:#x}", base_name(mapping_->path), address);
  }

  const SymbolQuery& query_;
  const std::vector<Mapping>& mappings_;
  const Mapping* mapping_ = nullptr;  // that is looked into
  std::uint64_t bias_ = 0;
  std::vector<NamedSymbol> exact_, alike_;
};

}  // namespace

NamedSymbols symbols_named(const SymbolQuery& query, const std::vector<Mapping>& mappings) {
  return Lookup(query, mappings).look();
}

}  // namespace tailtrace
