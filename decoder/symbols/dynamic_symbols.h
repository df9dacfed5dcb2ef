// The symbols by which an ELF image in memory, the vDSO, can be linked with. (System V ABI, chapter
// 5, "Dynamic Section": what it needs is told by its segments, without section headers.)
//
// Threading: pure function.
#pragma once

#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace {

// Functions, in the order of the table. The image begins with its ELF header, its addresses count
// from there, and of its end any part may be missing. Empty where what is there names none.
std::vector<ElfSymbol> dynamic_symbols(ByteSpan image);

}  // namespace tailtrace
