#include "decoder/code/vdso.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(Vdso, IsFoundAmongOtherMappings) {
  const auto found = vdso_in(
      "7ffd00000000-7ffd00001000 r--p 00000000 00:00 0                          [vvar]\n"
      "7ffd00001000-7ffd00003000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first.value, 0x7ffd00001000u);
  EXPECT_EQ(found->second.value, 0x7ffd00003000u);
}

TEST(Vdso, IsNoFileWhoseNameHasTheSameWords) {
  const auto found = vdso_in(
      "400000-401000 r-xp 00000000 fe:01 12  /tmp/[vdso]/program\n"
      "500000-501000 r-xp 00000000 fe:01 13  /tmp/ [vdso]\n"
      "7ffd00001000-7ffd00003000 r-xp 00000000 00:00 0                          [vdso]\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first.value, 0x7ffd00001000u);
}

TEST(Vdso, IsNotLargerThanTheKernelsCanBe) {
  EXPECT_FALSE(vdso_in("100000000000-200000000000 r-xp 00000000 00:00 0  [vdso]\n"));
  EXPECT_TRUE(vdso_in("100000000000-100000100000 r-xp 00000000 00:00 0  [vdso]\n"));
  EXPECT_FALSE(vdso_in("100000000000-100000101000 r-xp 00000000 00:00 0  [vdso]\n"));
}

TEST(Vdso, IsNotFoundWhereThereIsNone) {
  for (const char* maps : {"", "7f0000002000-7f0000003000 r--p 00001000 fe:01 12  /lib/x.so\n",
                           "[vdso]", "-[vdso]", "5-[vdso]", "5-4 r-xp 0 0 0 [vdso]", "5 [vdso]"})
    EXPECT_FALSE(vdso_in(maps)) << maps;
}

}  // namespace
}  // namespace tailtrace
