// Variables and functions of a process by name, as the symbol tables of the files that it has
// mapped have them.
//
// Threading: any; they read files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

struct NamedSymbol {
  Address address;  // in the process
  std::uint64_t size_bytes = 0;
  bool is_data = false;
  std::string name;    // for people
  std::string module;  // the path of its file
};

struct NamedSymbols {
  std::vector<NamedSymbol> found;
  // A function of that name is chosen as the program starts, and no symbol says which.
  bool is_chosen = false;
};

enum class NamesOf : std::uint8_t { kProgram, kLibraries };

// What `name` may be: those with just that name, the program's own file has one such at most, else
// those that a debugger would find by it. MODULE`NAME is a name of that file alone.
// Errors: the process is gone.
Result<NamedSymbols> symbols_named(const std::string& name, std::int32_t pid, NamesOf files);

}  // namespace tailtrace
