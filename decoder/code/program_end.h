// What a program cannot go on behind, which compilers put where it must never come.
//
// Threading: pure function.
#pragma once

#include "decoder/base/bytes.h"

namespace tailtrace {

// Whether `bytes` begin with 64-bit code's UD0, UD1, UD2 or HLT. A kernel may go on behind them.
bool ends_program(ByteSpan bytes);

}  // namespace tailtrace
