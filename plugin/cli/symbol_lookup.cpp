#include "plugin/cli/symbol_lookup.h"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "decoder/history/function_name.h"
#include "decoder/history/location.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {
namespace {

// What a file has of a name, in its own addresses.
class Named {
 public:
  explicit Named(std::string_view name) : name_(name) {}

  // Looks into the full symbol table, and the one for the dynamic linker.
  void look_into(const ElfFile& file) {
    for (Elf64_Word wanted : {SHT_SYMTAB, SHT_DYNSYM})
      for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != wanted) continue;
        look_into(file.elf(), section, header);
      }
  }

  const std::vector<NamedSymbol>& exactly() const { return exactly_; }
  const std::vector<NamedSymbol>& called() const { return called_; }
  bool is_chosen() const { return is_chosen_; }

 private:
  void look_into(Elf* elf, Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) return;
    const auto count = static_cast<int>(
        std::min<std::uint64_t>(header.sh_size / header.sh_entsize, ElfFile::kMaxSymbols));
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
      const char* found = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (found != nullptr) note(found, symbol);
    }
  }

  // Parts that compilers put apart ("_Z3addi.cold") go by their whole name only.
  void note(const std::string& symbol_name, const GElf_Sym& symbol) {
    const int type = GELF_ST_TYPE(symbol.st_info);
    const bool is_resolver = type == STT_GNU_IFUNC;
    if (type != STT_OBJECT && type != STT_FUNC && type != STT_NOTYPE && !is_resolver) return;
    Function function;
    function.symbol_name = symbol_name;
    if (symbol_name.find('.') == symbol_name.npos) function.name = demangle(symbol_name);
    const bool is_exact = has_name(function, name_);
    if (is_resolver) {
      is_chosen_ = is_chosen_ || is_exact;
      return;
    }
    if (!is_exact && !is_called(function, name_)) return;
    std::vector<NamedSymbol>& noted = is_exact ? exactly_ : called_;
    if (std::ranges::find(noted, Address{symbol.st_value}, &NamedSymbol::address) == noted.end())
      noted.push_back({{symbol.st_value},
                       symbol.st_size,
                       type == STT_OBJECT,
                       function.name.empty() ? symbol_name : function.name,
                       {}});
  }

  const std::string_view name_;
  std::vector<NamedSymbol> exactly_, called_;
  bool is_chosen_ = false;
};

// In the files of a process.
class Lookup {
 public:
  Lookup(std::string module, std::string name, const std::vector<Mapping>& mappings)
      : module_(std::move(module)), name_(std::move(name)), mappings_(mappings) {}

  // `all`: whatever has just that name; else the first such. False when it lies elsewhere.
  bool look_into(const Mapping& mapping, bool all) {
    if (!module_.empty() && !ends_path(mapping.path, module_)) return true;
    auto file = ElfFile::open(mapping.file());
    if (!file) return true;
    const auto bias = load_bias(file->segments(), mappings_, mapping);
    if (!bias) return false;
    Named named(name_);
    named.look_into(*file);
    const std::string debug = ModuleSymbols::of(std::move(*file))->debug_path();
    if (!debug.empty() && debug != mapping.file())
      if (auto separate = ElfFile::open(debug)) named.look_into(*separate);
    add(named.exactly(), mapping, *bias, all ? named.exactly().size() : 1, exactly_);
    add(named.called(), mapping, *bias, named.called().size(), called_);
    is_chosen_ = is_chosen_ || named.is_chosen();
    return true;
  }

  NamedSymbols found() const { return {exactly_.empty() ? called_ : exactly_, is_chosen_}; }

 private:
  static void add(const std::vector<NamedSymbol>& symbols, const Mapping& mapping,
                  std::uint64_t bias, std::size_t most, std::vector<NamedSymbol>& to) {
    for (std::size_t i = 0; i < std::min(most, symbols.size()); ++i) {
      NamedSymbol symbol = symbols[i];
      symbol.address.value += bias;
      symbol.module = mapping.path;
      to.push_back(std::move(symbol));
    }
  }

  const std::string module_, name_;
  const std::vector<Mapping>& mappings_;
  std::vector<NamedSymbol> exactly_, called_;
  bool is_chosen_ = false;
};

Result<std::string> program_path(std::int32_t pid) {
  std::error_code error;
  std::string path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  if (error) return fail(ErrorCode::kGone, "cannot look up names in the program", error.message());
  if (path.ends_with(kDeletedWord)) path.resize(path.size() - kDeletedWord.size());
  return path;
}

}  // namespace

Result<NamedSymbols> symbols_named(const std::string& name, std::int32_t pid, NamesOf files) {
  auto program = program_path(pid);
  if (!program) return fail(std::move(program.error()));
  auto maps = process_maps(pid);
  if (!maps) return fail(std::move(maps.error()));
  const std::vector<Mapping> mappings = mappings_of(pid, *maps);
  const std::size_t tick = name.find('`');
  const bool has_module = tick != name.npos;
  Lookup lookup(has_module ? name.substr(0, tick) : "", has_module ? name.substr(tick + 1) : name,
                mappings);
  std::set<std::string> seen;
  for (const Mapping& mapping : mappings) {
    const bool is_own = mapping.path == *program;
    if (is_own != (files == NamesOf::kProgram) || !mapping.has_file()) continue;
    if (!seen.contains(mapping.file()) && lookup.look_into(mapping, !is_own))
      seen.insert(mapping.file());
  }
  return lookup.found();
}

}  // namespace tailtrace
