#include "plugin/server/qemu/memory_region.h"

#include <gtest/gtest.h>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

constexpr char kMaps[] =
    "10000-12000 rw-p 00000000 00:00 0\n"
    "12000-13000 r--p 00000000 00:00 0\n"
    "20000-21000 rw-p 00000000 00:00 0                [stack]\n"
    "30000-31000 r-xp 00000000 00:00 0\n";

std::string region(std::uint64_t address) {
  return memory_region(kMaps, address,
                       [](Address begin, Address) { return begin.value == 0x12000; });
}

TEST(MemoryRegion, MappingsAndHolesBetweenThem) {
  EXPECT_EQ(region(0), "start:0;size:10000;");
  EXPECT_EQ(region(0x10fff), "start:10000;size:2000;permissions:rw;");
  EXPECT_EQ(region(0x13000), "start:13000;size:d000;");
  EXPECT_EQ(region(0x20000),
            "start:20000;size:1000;permissions:rw;name:" + to_hex(as_bytes("[stack]")) + ";");
  EXPECT_EQ(region(0x30000), "start:30000;size:1000;permissions:rx;");
  EXPECT_EQ(region(~0ull), "start:31000;size:fffffffffffcefff;");
}

TEST(MemoryRegion, GeneratedCodeThatWasExecutedMayBe) {
  EXPECT_EQ(region(0x12000), "start:12000;size:1000;permissions:rx;");
}

}  // namespace
}  // namespace tailtrace
