#include "decoder/symbols/blocks.h"

#include <dwarf.h>

namespace tailtrace {
namespace {

constexpr std::size_t kMaxDiesLookedAt = std::size_t{1} << 24;

bool holds_address(Dwarf_Die& die, std::uint64_t address) {
  bool holds = false;
  each_range(die, kMaxRangesOfDie, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    holds = holds || (begin <= address && address < end);
  });
  return holds;
}

// Goes on to what of `die` the address is in; false when that is nothing.
bool go_inside(Dwarf_Die& die, std::uint64_t address, std::size_t& dies_left) {
  Dwarf_Die child;
  if (dwarf_child(&die, &child) != 0) return false;
  do {
    if (dies_left == 0) return false;
    --dies_left;
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) continue;
    if (!holds_address(child, address)) continue;
    die = child;
    return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// Whether a lexical block has anything to look up in it: debuggers know it then.
bool has_symbols(Dwarf_Die& block) {
  Dwarf_Die child;
  if (dwarf_child(&block, &child) != 0) return false;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_lexical_block:
      case DW_TAG_inlined_subroutine:
      case DW_TAG_call_site:
      case DW_TAG_GNU_call_site:
        break;
      default:
        return true;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

}  // namespace

std::vector<Dwarf_Die> blocks_at(Dwarf_Die function, std::uint64_t address) {
  std::vector<Dwarf_Die> blocks;
  std::size_t dies_left = kMaxDiesLookedAt;
  for (int depth = 0; depth < kMaxDebugDepth && go_inside(function, address, dies_left); ++depth)
    blocks.push_back(function);
  return blocks;
}

Dwarf_Off debugger_block_at(Dwarf_Die function, std::uint64_t address) {
  Dwarf_Off known = dwarf_dieoffset(&function);
  for (Dwarf_Die& block : blocks_at(function, address))
    if (dwarf_tag(&block) == DW_TAG_inlined_subroutine || has_symbols(block))
      known = dwarf_dieoffset(&block);
  return known;
}

}  // namespace tailtrace
