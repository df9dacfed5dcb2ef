#include "plugin/cli/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailtrace {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kNone = ~0ull;

TEST(Units, SizesTakeTheUnitsPeopleType) {
  for (auto [text, size] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"0", 0},
           {"512", 512},
           {"512b", 512},
           {"512 bytes", 512},
           {"64KiB", 65536},
           {"64k", 65536},
           {"64 kb", 65536},
           {"1MiB", 1 << 20},
           {"2G", 2ull << 30},
           {"16777215TiB", 16777215ull << 40},
       })
    EXPECT_EQ(parse_size(text).value_or(kNone), size) << text;
}

TEST(Units, WhatIsNoSizeIsSaidToBeNone) {
  for (auto [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "not a number"},
           {"x", "not a number"},
           {"-1", "negative"},
           {"1.5MiB", "no unit"},
           {"1 parsec", "no unit"},
           {"1KiBi", "no unit"},
           {"18446744073709551616", "larger than 64 bits"},
           {"16777216TiB", "larger than 64 bits"},
       }) {
    auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, ErrorCode::kUsage);
    EXPECT_THAT(size.error().why, HasSubstr(why)) << text;
  }
}

TEST(Units, WhatIsPrintedIsAccepted) {
  for (std::uint64_t size : {0ull, 1ull, 100ull, 1024ull, 516ull << 10, 64ull << 20, 3ull << 40})
    EXPECT_EQ(parse_size(format_size(size)).value_or(kNone), size) << format_size(size);
  EXPECT_EQ(format_size(516 << 10), "516 KiB");
  EXPECT_EQ(format_size(64 << 20), "64 MiB");
}

TEST(Units, ARingIsGivenInRecordsOrBytes) {
  EXPECT_EQ(parse_ring_records("65536").value_or(kNone), 65536u);
  EXPECT_EQ(parse_ring_records("2MiB").value_or(kNone), 65536u);
  auto odd = parse_ring_records("3MiB");
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().to_string(), HasSubstr("use 131072"));
}

}  // namespace
}  // namespace tailtrace
