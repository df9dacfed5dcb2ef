#include "plugin/server/qemu/guest_maps.h"

#include <gtest/gtest.h>

#include <set>

namespace tailtrace {
namespace {

Result<std::string> part_of(std::string_view maps, const std::set<std::uint64_t>& guest) {
  return guest_part_of_maps(
      maps, [&](Address address) -> Result<bool> { return guest.contains(address.value); });
}

TEST(GuestMaps, ProgramsMappingsAreLeft) {
  auto part = part_of(
      "00400000-00401000 r-xp 00000000 08:01 1 /bin/a-program\n"
      "280000000000-282000000000 rw-s 00000000 00:19 2 /dev/shm/ring\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n",
      {0x400000, 0x7f0000000000});
  ASSERT_TRUE(part);
  EXPECT_EQ(*part,
            "00400000-00401000 r-xp 00000000 08:01 1 /bin/a-program\n"
            "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n");
}

TEST(GuestMaps, DetailsStayWithTheirMapping) {
  auto part = part_of(
      "00400000-00401000 r-xp 00000000 08:01 1 /bin/a-program\n"
      "Size:                  4 kB\n"
      "VmFlags: rd ex mr\n"
      "55550000-55560000 r-xp 00000000 08:01 3 /usr/bin/qemu-x86_64\n"
      "Size:                 64 kB\n"
      "VmFlags: rd ex mr\n",
      {0x400000});
  ASSERT_TRUE(part);
  EXPECT_EQ(*part,
            "00400000-00401000 r-xp 00000000 08:01 1 /bin/a-program\n"
            "Size:                  4 kB\n"
            "VmFlags: rd ex mr\n");
}

TEST(GuestMaps, TextThatIsNoneGivesNothing) {
  for (std::string_view text : {"", "\n", "-", "- -", "zz-zz r", "Size: 4 kB", "1-", "400000 r"}) {
    auto part = part_of(text, {0});
    ASSERT_TRUE(part);
    EXPECT_EQ(*part, "") << text;
  }
}

TEST(GuestMaps, LastLineMayLackItsEnd) {
  auto part = part_of("1000-2000 rw-p 0 0:0 0", {0x1000});
  ASSERT_TRUE(part);
  EXPECT_EQ(*part, "1000-2000 rw-p 0 0:0 0");
}

TEST(GuestMaps, WhoCannotBeAskedEndsIt) {
  auto part = guest_part_of_maps("1000-2000 rw-p 0 0:0 0\n", [](Address) -> Result<bool> {
    return fail(ErrorCode::kGone, "gone");
  });
  EXPECT_FALSE(part);
}

}  // namespace
}  // namespace tailtrace
