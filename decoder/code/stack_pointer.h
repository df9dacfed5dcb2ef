// Which instructions go over to another stack.
//
// Threading: pure functions.
#pragma once

#include "decoder/base/bytes.h"

namespace tailtrace {

// Whether a 64-bit instruction takes a stack pointer from elsewhere: from memory that is not of the
// present frame, or from a register that functions need not keep for their callers. So do
// coroutines when they take turns, longjmp and unwinders; who leaves its own frame takes what it
// kept itself (System V ABI, AMD64 supplement, section 3.2.1). SDM volume 2: MOV, XCHG, POP.
bool loads_stack_pointer(ByteSpan instruction);

}  // namespace tailtrace
