#include "decoder/symbols/symbol_table.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

// As _init has no size, and the procedure linkage table in the section behind it no first name.
TEST(SymbolTable, SymbolsWithoutASizeEndWithTheirSection) {
  SymbolTable table({{0x1000, 0, "_init", 0x1017}, {0x1030, 0x10, "malloc@plt", ~0ull}});
  ASSERT_NE(table.cover(0x1016).symbol, nullptr);
  EXPECT_EQ(table.cover(0x1016).symbol->name, "_init");
  EXPECT_EQ(table.cover(0x1016).end, 0x1017u);
  EXPECT_EQ(table.cover(0x1017).symbol, nullptr);
  EXPECT_EQ(table.cover(0x1020).symbol, nullptr);
  EXPECT_EQ(table.cover(0x1020).begin, 0x1017u);
  EXPECT_EQ(table.cover(0x1020).end, 0x1030u);
  EXPECT_EQ(table.cover(0x1030).symbol->name, "malloc@plt");
}

}  // namespace
}  // namespace tailtrace
