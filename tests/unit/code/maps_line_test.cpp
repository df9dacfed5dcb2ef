#include "decoder/code/maps_line.h"

#include <gtest/gtest.h>

#include <string>

namespace tailtrace {
namespace {

TEST(MapsLine, HasAllThatTheKernelTells) {
  const auto line = parse_maps_line(
      "55d0c0a00000-55d0c0a21000 r-xs 00002000 fe:01 1234                  /usr/a name (deleted)");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->begin, 0x55d0c0a00000u);
  EXPECT_EQ(line->end, 0x55d0c0a21000u);
  EXPECT_EQ(line->access, "r-xs");
  EXPECT_FALSE(line->writable());
  EXPECT_TRUE(line->executable());
  EXPECT_TRUE(line->shared());
  EXPECT_EQ(line->file_offset_bytes, 0x2000u);
  EXPECT_EQ(line->backing, "00002000 fe:01 1234");
  EXPECT_EQ(line->file_id, "fe:01 1234");
  EXPECT_EQ(line->name, "/usr/a name (deleted)");
  EXPECT_TRUE(line->has_file());
}

TEST(MapsLine, NeedHaveNoFile) {
  const auto nameless = parse_maps_line("1000-2000 rw-p 00000000 00:00 0");
  ASSERT_TRUE(nameless);
  EXPECT_EQ(nameless->name, "");
  EXPECT_EQ(nameless->file_id, "00:00 0");
  const auto anonymous = parse_maps_line("1000-2000 rw-p 00000000 00:00 0   [anon:a/b]");
  ASSERT_TRUE(anonymous);
  EXPECT_EQ(anonymous->name, "[anon:a/b]");
  EXPECT_FALSE(anonymous->has_file());
}

TEST(MapsLine, OthersAreNone) {
  for (std::string text :
       {"", "-", "Size:  4 kB", "VmFlags: rd mr mw", "1000-2000", "1000-2000 r-x",
        "2000-1000 r-xp 0 0:0 0", "1000-1000 r-xp 0 0:0 0", "x-2 r-xp 0 0:0 0",
        "1000-2000 r-xp z 0:0 0", "was 3 1000-2000 r-xp 0 0:0 0 /x"})
    EXPECT_FALSE(parse_maps_line(text)) << text;
}

TEST(MapsLine, PathIsFoundBehindAnyWords) {
  EXPECT_EQ(path_in_maps_line("was 3 1000-2000 r-xp 0 0:0 0   /lib/a b.so"), "/lib/a b.so");
  EXPECT_EQ(path_in_maps_line("1000-2000 r-xp 0 0:0 0 [heap]"), "");
}

TEST(MapsLine, ThoseThatChangedAreWholeLines) {
  struct Case {
    std::string_view before, now, changed_before, changed_now;
  };
  for (const Case& c :
       {Case{"", "", "", ""}, Case{"", "a\n", "", "a\n"}, Case{"a\nb\n", "a\nb\n", "", ""},
        Case{"a\nb\nc\n", "a\nx\nb\nc\n", "b\n", "x\nb\n"},
        Case{"a\nb1\nc\n", "a\nb2\nc\n", "b1\n", "b2\n"},
        Case{"a\n1b\nc\n", "a\n2b\nc\n", "1b\n", "2b\n"}, Case{"a\na\na\n", "a\na\n", "a\n", ""},
        Case{"ab", "abc", "ab", "abc"}}) {
    const ChangedLines changed = changed_lines(c.before, c.now);
    EXPECT_EQ(changed.before, c.changed_before) << c.before;
    EXPECT_EQ(changed.now, c.changed_now) << c.now;
  }
}

}  // namespace
}  // namespace tailtrace
