// Apx: instructions in the encodings of Intel's Advanced Performance Extensions, which Zydis 4.0
// does not know: the prefix REX2 (D5) before instructions of the maps 0 and 0F, among them JMPABS,
// and map 4 of EVEX. (Intel, "Advanced Performance Extensions Architecture Specification",
// sections 3.1.1 and 3.1.2.)
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "decoder/code/instruction.h"

namespace tailtrace {

// Whether 64-bit code at `bytes` begins with such an encoding.
bool is_apx(ByteSpan bytes);

// REQUIRES: is_apx(bytes). JMPABS is an indirect jump: its target is told by a TIP. Of map 4 only
// the length is known; none of its instructions is a branch.
std::optional<Instruction> decode_apx(ByteSpan bytes, Address address);

// "jmpabs 0x401136"; of all others only "(apx)".
std::string disassemble_apx(ByteSpan bytes);

}  // namespace tailtrace
