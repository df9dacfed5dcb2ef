#include "decoder/symbols/dynamic_symbols.h"

#include <elf.h>

#include <algorithm>

namespace tailtrace {
namespace {

// The table that begins there, cut off where the image ends.
template <class T>
std::vector<T> table_at(ByteSpan image, std::uint64_t begin, std::uint64_t size_bytes) {
  std::vector<T> rows;
  if (begin >= image.size()) return rows;
  const ByteSpan bytes =
      image.subspan(begin, std::min<std::uint64_t>(size_bytes, image.size() - begin));
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T))
    rows.push_back(load<T>(bytes, at));
  return rows;
}

struct Tables {
  std::uint64_t symbols = 0, strings = 0, strings_bytes = 0;
};

Tables tables_of(ByteSpan image) {
  Tables tables;
  for (const Elf64_Ehdr& header : table_at<Elf64_Ehdr>(image, 0, sizeof(Elf64_Ehdr)))
    for (const Elf64_Phdr& segment :
         table_at<Elf64_Phdr>(image, header.e_phoff, sizeof(Elf64_Phdr) * header.e_phnum)) {
      if (segment.p_type != PT_DYNAMIC) continue;
      for (const Elf64_Dyn& entry :
           table_at<Elf64_Dyn>(image, segment.p_offset, segment.p_filesz)) {
        if (entry.d_tag == DT_SYMTAB) tables.symbols = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRTAB) tables.strings = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) tables.strings_bytes = entry.d_un.d_val;
        if (entry.d_tag == DT_NULL) break;
      }
    }
  return tables;
}

// Empty where it does not end inside of the strings, or is longer than any of the kernel's.
std::string name_at(ByteSpan strings, std::size_t offset) {
  constexpr std::size_t kMaxName_bytes = 256;
  if (offset >= strings.size()) return {};
  strings = strings.subspan(offset, std::min(strings.size() - offset, kMaxName_bytes));
  const auto end = std::find(strings.begin(), strings.end(), 0);
  return end == strings.end() ? std::string() : std::string(strings.begin(), end);
}

}  // namespace

// How many symbols there are is nowhere told; linkers put their names right behind them.
std::vector<ElfSymbol> dynamic_symbols(ByteSpan image) {
  const Tables tables = tables_of(image);
  std::vector<ElfSymbol> symbols;
  if (tables.symbols >= tables.strings || tables.strings >= image.size()) return symbols;
  const ByteSpan strings = image.subspan(
      tables.strings, std::min<std::uint64_t>(tables.strings_bytes, image.size() - tables.strings));
  const auto all = table_at<Elf64_Sym>(image, tables.symbols, tables.strings - tables.symbols);
  for (const Elf64_Sym& symbol : all) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
    std::string name = name_at(strings, symbol.st_name);
    if (!name.empty()) symbols.push_back({symbol.st_value, symbol.st_size, std::move(name)});
  }
  return symbols;
}

}  // namespace tailtrace
