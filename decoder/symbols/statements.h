// Statements: where the code of source lines begins, as debuggers take a unit's table of lines.
//
// Optimizers have many lines begin at one address, and one line at many. So a line begins wherever
// its row says that a statement does (DWARF 5, section 6.2.2, is_stmt), whatever other rows are
// there, but for those that GDB leaves out: what of a file has no length before code of another
// file goes on, and further rows of one line once one of them has a discriminator.
//
// Threading: pure function.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

namespace tailtrace {

struct Statement {
  std::uint64_t address = 0;
  unsigned line = 0;
  const char* file = nullptr;  // as libdw keeps it for the unit
};

// Of a unit, ordered by line, then by address.
std::vector<Statement> statements_of(Dwarf_Die unit);

// The row that tells the line of an address: of those of its code the last one, or the last one
// that begins a statement if there is any, as in GDB. Null: none does.
Dwarf_Line* row_at(Dwarf_Die& unit, std::uint64_t address);

}  // namespace tailtrace
