// SymbolTable: which symbol covers an address, by the rules GDB has for its minimal symbols.
//
// Threading: immutable once made.
#pragma once

#include <span>
#include <vector>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {

class SymbolTable {
 public:
  SymbolTable() = default;
  // Of several symbols at one address the last counts: from ElfFile::symbols, the last by name.
  explicit SymbolTable(std::vector<ElfSymbol> symbols);

  // What holds for every address of [begin, end), a stretch around the one asked for.
  struct Cover {
    const ElfSymbol* symbol = nullptr;  // null: no symbol covers it
    std::uint64_t begin = 0;
    std::uint64_t end = ~0ull;
  };
  Cover cover(std::uint64_t address) const;

  // The symbols of an address, in the order in which they came.
  std::span<const ElfSymbol> at(std::uint64_t address) const;
  std::span<const ElfSymbol> symbols() const { return symbols_; }

 private:
  const ElfSymbol* find(std::uint64_t address) const;

  std::vector<ElfSymbol> symbols_;
  std::vector<std::uint64_t> edges_;  // where the answer may change, ordered
};

}  // namespace tailtrace
