// Indirect functions: those that are chosen among several as a program starts, by what the
// processor can do.
//
// Their symbol (STT_GNU_IFUNC) is that of a resolver, which the dynamic linker calls; what it
// returns is where all calls go. A resolver takes the address of each implementation that it may
// return, so its code tells which these are.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {

struct IndirectFunction {
  std::uint64_t implementation = 0;  // its address
  std::string name;                  // what it may be chosen as

  friend auto operator<=>(const IndirectFunction&, const IndirectFunction&) = default;
};

// Of the symbols that are resolvers; the code is the file's. Ordered, each once.
std::vector<IndirectFunction> indirect_functions(const ElfFile& file,
                                                 std::span<const ElfSymbol> symbols);

// Where the linker of a running program puts what a resolver has chosen, by the resolver's address:
// of those that the file's own code calls.
std::map<std::uint64_t, std::uint64_t> chosen_slots(const ElfFile& file);

}  // namespace tailtrace
