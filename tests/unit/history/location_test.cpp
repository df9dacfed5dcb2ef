#include "decoder/history/location.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

Location at(std::uint64_t address) {
  Location location;
  location.address = Address{address};
  return location;
}

Location parsed(std::string_view text) {
  Result<Location> location = parse_location(text);
  EXPECT_TRUE(location) << text;
  return location ? *location : Location{};
}

TEST(Location, IsReadAsDebuggersWriteIt) {
  EXPECT_EQ(parsed("*0x401136"), at(0x401136));
  EXPECT_EQ(parsed(" * 0x401136 "), at(0x401136));
  EXPECT_EQ(parsed("*4198710"), at(4198710));
  EXPECT_EQ(parsed("0X40A"), at(0x40a));
  EXPECT_EQ(parsed("main"), (Location{{}, "", 0, "", "main", {}}));
  EXPECT_EQ(parsed("worker.cc:88"), (Location{{}, "worker.cc", 88, "", "", {}}));
  EXPECT_EQ(parsed("src/a b.c : 7"), (Location{{}, "src/a b.c", 7, "", "", {}}));
  EXPECT_EQ(parsed("worker.cc:step"), (Location{{}, "worker.cc", 0, "", "step", {}}));
  EXPECT_EQ(parsed("libc.so.6`free"), (Location{{}, "", 0, "libc.so.6", "free", {}}));
  EXPECT_EQ(parsed("libc.so.6+0x27fd0"), (Location{{}, "", 0, "", "libc.so.6", 0x27fd0}));
  EXPECT_EQ(parsed("*main + 18"), (Location{{}, "", 0, "", "main", 18}));
}

TEST(Location, NamesOfCxxFunctionsAreNotTakenApart) {
  for (const char* name :
       {"Worker::step", "ns::f<int, 3>(char const*)", "operator+", "Foo::operator+(Foo const&)",
        "(anonymous namespace)::f(int)", "std::vector<int>::operator[]", "::global", "operator<<",
        "ns::f[abi:cxx11](int)"})
    EXPECT_EQ(parsed(name), (Location{{}, "", 0, "", name, {}}));
  EXPECT_EQ(parsed("a.cc:ns::f"), (Location{{}, "a.cc", 0, "", "ns::f", {}}));
  EXPECT_EQ(parsed("Worker::step+0x12"), (Location{{}, "", 0, "", "Worker::step", 0x12}));
}

TEST(Location, WhatCannotBeReadIsAUsageErrorThatSaysWhatCan) {
  for (const char* text : {"", "  ", "*", "*main", "*0x", "0xg", "88", ":88", "file.c:", "file.c:0",
                           "file.c:99999999999", "a: :f", "`f", "lib`", "lib`f`g", "*1 2"}) {
    Result<Location> location = parse_location(text);
    ASSERT_FALSE(location) << text;
    EXPECT_EQ(location.error().code, ErrorCode::kUsage);
    EXPECT_FALSE(location.error().why.empty()) << text;
    EXPECT_NE(location.error().fix.find("FILE:LINE"), std::string::npos);
  }
  EXPECT_FALSE(parse_location(std::string(kMaxLocation_bytes + 1, 'x')));
  EXPECT_FALSE(parse_location(std::string_view("a\0b", 3)));
}

TEST(Location, WhatIsPrintedReadsAsTheSame) {
  for (const char* text : {"*0x401136", "main", "worker.cc:88", "worker.cc:step", "libc.so.6`free",
                           "main+0x12", "(anonymous namespace)::f(int)", "a.cc: ::f"}) {
    Location location = parsed(text);
    EXPECT_EQ(location_text(location), text);
    EXPECT_EQ(parsed(location_text(location)), location);
  }
}

TEST(Location, PathsMayLackTheirBeginning) {
  EXPECT_TRUE(ends_path("/src/lib/a.c", "a.c"));
  EXPECT_TRUE(ends_path("/src/lib/a.c", "lib/a.c"));
  EXPECT_TRUE(ends_path("/src/lib/a.c", "/src/lib/a.c"));
  EXPECT_TRUE(ends_path("/src/lib/a.c", "/lib/a.c"));
  EXPECT_FALSE(ends_path("/src/lib/a.c", "ib/a.c"));
  EXPECT_FALSE(ends_path("/src/lib/a.c", ".c"));
  EXPECT_FALSE(ends_path("a.c", "lib/a.c"));
  EXPECT_FALSE(ends_path("a.c", ""));
}

TEST(Location, ModulesMayLackTheirVersion) {
  for (const char* name : {"libz.so.1.2.13", "libz.so.1.2", "libz.so.1", "libz.so", "lib/libz.so"})
    EXPECT_TRUE(is_module("/lib/libz.so.1.2.13", name)) << name;
  for (const char* name : {"libz", "libz.so.1.2.1", "libz.so.", "z.so", "13", ""})
    EXPECT_FALSE(is_module("/lib/libz.so.1.2.13", name)) << name;
  EXPECT_FALSE(is_module("/bin/python3.11", "python"));
  EXPECT_FALSE(is_module("1.2", ""));
}

}  // namespace
}  // namespace tailtrace
