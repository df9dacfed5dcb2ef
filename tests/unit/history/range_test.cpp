#include "decoder/history/range.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

RangeContext hundred(std::optional<Range> previous = {}) { return {100, 10, previous}; }

void expect_range(const char* text, std::uint64_t first, std::uint64_t last,
                  const RangeContext& context = hundred()) {
  auto range = parse_range(text, context);
  ASSERT_TRUE(range) << text << ": " << range.error().to_string();
  EXPECT_EQ(range->first, first) << text;
  EXPECT_EQ(range->last, last) << text;
}

void expect_error(const char* text, ErrorCode code, const RangeContext& context = hundred()) {
  auto range = parse_range(text, context);
  ASSERT_FALSE(range) << text << " is " << range->first << "," << range->last;
  EXPECT_EQ(range.error().code, code) << text;
  EXPECT_FALSE(range.error().why.empty());
}

TEST(Range, IsReadAsGdbReadsIt) {
  expect_range("7", 7, 16);
  expect_range("7,9", 7, 9);
  expect_range(" 7 , 9 ", 7, 9);
  expect_range("7,7", 7, 7);
  expect_range("7,+3", 7, 9);
  expect_range("7,-3", 5, 7);
  expect_range("7,-50", 1, 7);
  expect_range("95", 95, 100);
  expect_range("95,+50", 95, 100);
  expect_range("1,18446744073709551615", 1, 100);
  expect_range("1,99999999999999999999999999", 1, 100);
  expect_range("100,+18446744073709551615", 100, 100);
}

TEST(Range, CountsBackFromTheNewest) {
  expect_range("-1", 100, 100);
  expect_range("-14", 87, 96);
  expect_range("-14,-1", 87, 100);
  expect_range("-14,+2", 87, 88);
  expect_range("-14,90", 87, 90);
  expect_range("-1000,-99", 1, 2);
  expect_error("-1000,+5", ErrorCode::kNegative);
}

TEST(Range, CountsBackFromTheNewestOfAHistoryThatNobodyCounted) {
  constexpr std::uint64_t kNewest = std::uint64_t{1} << 62;
  const RangeContext uncounted{kNewest, 10, {}};
  expect_range("-5,-1", kNewest - 4, kNewest, uncounted);
  expect_range("-5", kNewest - 4, kNewest, uncounted);
  expect_range("-20,+5", kNewest - 19, kNewest - 15, uncounted);
}

TEST(Range, SaysOfAnEmptyHistoryThatItIsEmpty) {
  const RangeContext empty{0, 10, {}};
  for (const char* text : {"", "-", "all", "-5", "1,2"})
    expect_error(text, ErrorCode::kNegative, empty);
  EXPECT_EQ(parse_range("", empty).error().to_line(),
            "there is nothing to show: the history is empty");
  EXPECT_EQ(parse_range("all", empty).error().to_line(),
            "there is nothing in the range `all`: the history is empty");
}

TEST(Range, TurnsPages) {
  expect_range("", 91, 100);
  expect_range("-", 91, 100);
  expect_range("-", 81, 90, hundred(Range{91, 100}));
  expect_range("", 51, 60, hundred(Range{41, 50}));
  expect_range("", 96, 100, hundred(Range{86, 95}));
  expect_range("-", 1, 3, hundred(Range{4, 13}));
  expect_error("-", ErrorCode::kNegative, hundred(Range{1, 3}));
  expect_error("", ErrorCode::kNegative, hundred(Range{91, 100}));
  expect_range("", 1, 3, {3, 10, {}});
  expect_range("all", 1, 100);
}

TEST(Range, SaysWhatItCannotRead) {
  for (const char* bad : {"0", "x", "1,", ",1", "1,2,3", "+5", "--", "1,+", "1,+0", "1,0", "0x10",
                          "1.5", "1,--2", "- 1"})
    expect_error(bad, ErrorCode::kUsage);
}

TEST(Range, SaysThatNothingIsThere) {
  for (const char* none : {"101", "9,7", "200,300"}) expect_error(none, ErrorCode::kNegative);
  // However many there are: of some histories nobody knows.
  for (const char* backwards : {"9,7", "200,100", "-7,-9"})
    EXPECT_EQ(parse_range(backwards, hundred()).error().why, "it ends before it begins");
  EXPECT_EQ(parse_range("-7,9", hundred()).error().why, "there are 1 to 100");
  for (const char* any : {"", "-", "1", "-1", "1,5", "all"})
    expect_error(any, ErrorCode::kNegative, {0, 10, {}});
}

}  // namespace
}  // namespace tailtrace
