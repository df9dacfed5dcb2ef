// Blocks of a function's code in its debug information: lexical ones, and what the compiler put
// into it of other functions.
//
// Threading: pure functions.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tailtrace {

// Deeper nesting, and ranges of code beyond so many, are not looked at.
constexpr int kMaxDebugDepth = 200;
constexpr std::size_t kMaxRangesOfDie = 1 << 16;

// Calls f(begin, end) for the ranges of a unit, function or block, a limited number of them.
template <class F>
void each_range(Dwarf_Die& die, std::size_t limit, F f) {
  Dwarf_Addr base = 0, begin = 0, end = 0;
  std::ptrdiff_t at = 0;
  for (std::size_t i = 0; i < limit; ++i) {
    at = dwarf_ranges(&die, at, &base, &begin, &end);
    if (at <= 0) return;
    // Code that the linker left out ends up at 0.
    if (begin < end && begin != 0) f(begin, end);
  }
}

// The blocks of a function that an address is in, outermost first.
std::vector<Dwarf_Die> blocks_at(Dwarf_Die function, std::uint64_t address);

// The innermost one that debuggers know, or the function itself: where it is in the debug
// information.
Dwarf_Off debugger_block_at(Dwarf_Die function, std::uint64_t address);

}  // namespace tailtrace
