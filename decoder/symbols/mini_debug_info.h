// MiniDebugInfo: the table of symbols that some systems leave in stripped files, an ELF file packed
// by xz in the section .gnu_debugdata. It names what the table for the dynamic linker does not.
//
// Threading: pure functions.
#pragma once

#include <libelf.h>

#include "decoder/base/bytes.h"

namespace tailtrace {

// The ELF file, as it is in there; empty when there is none, or none that can be unpacked.
Bytes mini_debug_info(Elf* elf);

}  // namespace tailtrace
