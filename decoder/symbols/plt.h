// Names for the stubs through which a program calls into its libraries (the procedure linkage
// table): the linker names none of them, debuggers call them "NAME@plt".
//
// Threading: pure function.
#pragma once

#include <libelf.h>

#include <vector>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {

// Adds a symbol for each stub in .plt, .plt.sec and .plt.got whose jump goes through a slot that a
// relocation names.
void add_plt_symbols(Elf* elf, std::vector<ElfSymbol>& symbols);

}  // namespace tailtrace
