#include "decoder/symbols/symbol_table.h"

#include <algorithm>

namespace tailtrace {
namespace {

std::uint64_t end_of(const ElfSymbol& symbol) {
  return symbol.value + std::min(symbol.size_bytes, ~std::uint64_t{0} - symbol.value);
}

bool holds(const ElfSymbol& symbol, std::uint64_t address) {
  return symbol.value <= address && address < end_of(symbol);
}

}  // namespace

SymbolTable::SymbolTable(std::vector<ElfSymbol> symbols) : symbols_(std::move(symbols)) {
  if (!std::ranges::is_sorted(symbols_, {}, &ElfSymbol::value))
    std::ranges::stable_sort(symbols_, {}, &ElfSymbol::value);
  edges_.reserve(symbols_.size() * 2);
  for (const ElfSymbol& symbol : symbols_) {
    edges_.push_back(symbol.value);
    edges_.push_back(symbol.size_bytes != 0 ? end_of(symbol) : symbol.section_end);
  }
  std::sort(edges_.begin(), edges_.end());
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
}

SymbolTable::Cover SymbolTable::cover(std::uint64_t address) const {
  Cover cover{find(address), 0, ~0ull};
  auto after = std::upper_bound(edges_.begin(), edges_.end(), address);
  if (after != edges_.end()) cover.end = *after;
  if (after != edges_.begin()) cover.begin = *--after;
  return cover;
}

std::span<const ElfSymbol> SymbolTable::at(std::uint64_t address) const {
  return std::ranges::equal_range(symbols_, address, {}, &ElfSymbol::value);
}

// The nearest symbol with a size that covers the address, or the one before it if that reaches
// further; failing these the nearest without a size in the same section. Of several at one address
// the last by name.
const ElfSymbol* SymbolTable::find(std::uint64_t address) const {
  auto next = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                               [](std::uint64_t a, const ElfSymbol& s) { return a < s.value; });
  const ElfSymbol* unsized = nullptr;
  while (next != symbols_.begin()) {
    const ElfSymbol& symbol = *--next;
    if (symbol.size_bytes == 0) {
      if (unsized == nullptr && address < symbol.section_end) unsized = &symbol;
      continue;
    }
    if (holds(symbol, address)) return &symbol;
    if (next == symbols_.begin() || !holds(*std::prev(next), address)) return unsized;
  }
  return unsized;
}

}  // namespace tailtrace
