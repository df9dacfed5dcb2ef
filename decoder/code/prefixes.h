// Prefixes of x86 instructions (SDM, volume 2, "Instruction prefixes").
//
// Threading: pure functions.
#pragma once

#include <cstdint>

namespace tailtrace {

// Segments, the sizes of operands and addresses, LOCK, REPNE and REP.
constexpr bool is_legacy_prefix(std::uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return false;
  }
}

}  // namespace tailtrace
