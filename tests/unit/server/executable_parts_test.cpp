#include "plugin/server/qemu/executable_parts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

bool never(Address, Address) { return false; }

TEST(ExecutableParts, AMappingWithoutAFileIsAsItsCodeWas) {
  const std::string maps =
      "4000000000-4000002000 rw-p 00000000 00:00 0 \n"
      "4000002000-4000003000 r--p 00000000 00:00 0 \n"
      "4000003000-4000004000 r-xp 00000000 00:00 0                              [vdso]\n";
  EXPECT_EQ(maps_with_code(maps, never), maps);
  EXPECT_EQ(
      maps_with_code(maps, [](Address begin, Address) { return begin.value == 0x4000002000; }),
      "4000000000-4000002000 rw-p 00000000 00:00 0 \n"
      "4000002000-4000003000 r-xp 00000000 00:00 0 \n"
      "4000003000-4000004000 r-xp 00000000 00:00 0                              [vdso]\n");
}

// The kernel has mapped this program by its file, too.
TEST(ExecutableParts, OfAFileTheyAreAsTheKernelMapsThem) {
  const auto own = read_file("/proc/self/maps", 16 << 20);
  ASSERT_TRUE(own);
  std::string_view text = as_text(*own);
  std::string merged;  // as qemu maps it
  std::vector<std::pair<std::uint64_t, std::string>> expected, parts;
  while (!text.empty()) {
    const auto line = parse_maps_line(cut_line(text));
    if (!line || !line->name.ends_with("/unit_tests") || line->writable()) continue;
    expected.push_back({line->begin, std::string(line->access)});
    merged +=
        fmt::format("{:x}-{:x} r--p {} {}\n", line->begin, line->end, line->backing, line->name);
  }
  const std::string marked = maps_with_code(merged, never);
  text = marked;
  while (!text.empty()) {
    const auto line = parse_maps_line(cut_line(text));
    ASSERT_TRUE(line);
    parts.push_back({line->begin, std::string(line->access)});
  }
  EXPECT_EQ(parts, expected);
}

TEST(ExecutableParts, TogetherTheyAreTheMapping) {
  const auto own = read_file("/proc/self/maps", 16 << 20);
  ASSERT_TRUE(own);
  std::string_view text = as_text(*own);
  while (!text.empty()) {
    const auto line = parse_maps_line(cut_line(text));
    ASSERT_TRUE(line);
    std::uint64_t at = line->begin;
    for (const MappedPart& part : executable_parts(*line, never)) {
      EXPECT_EQ(part.begin, at);
      EXPECT_LT(part.begin, part.end);
      at = part.end;
    }
    EXPECT_EQ(at, line->end);
  }
}

}  // namespace
}  // namespace tailtrace
