// Functions and variables of a process by name, as the symbol tables of the files that it has
// mapped have them.
//
// Threading: any; they read files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

struct NamedSymbol {
  enum class Kind : std::uint8_t { kFunction, kResolver, kVariable };

  Kind kind = Kind::kFunction;
  Address address;  // in the process
  std::uint64_t size_bytes = 0;
  std::string name;    // for people
  std::string module;  // the path of its file
  // A part of a function that a compiler put apart ("_Z3addi.cold"), and that lacks its suffix.
  bool is_apart = false;
  bool is_old = false;  // as ElfSymbol has it
  // What a resolver may choose, as far as its code tells, with what names it alone.
  std::map<Address, std::string> implementations;
  // Where the process has the address of the one that is chosen, once it is; null: nobody knows.
  Address slot = {};
};

struct SymbolQuery {
  std::string module;  // of this file alone; empty: of any
  std::string name;
  bool with_variables = false;
};

struct NamedSymbols {
  std::vector<NamedSymbol> found;  // in the order of the mappings
  bool is_exact = false;           // they have just that name
};

// Those with just that name, else those that a debugger would find by it.
NamedSymbols symbols_named(const SymbolQuery& query, const std::vector<Mapping>& mappings);

}  // namespace tailtrace
