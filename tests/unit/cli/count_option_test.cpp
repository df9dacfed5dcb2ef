#include "plugin/cli/count_option.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

class CountOption : public testing::Test {
 protected:
  CountOption() { add_count(app_, "--limit", limit_, "show the newest N"); }
  std::string trouble_with(const std::string& word) {
    try {
      app_.parse(std::vector<std::string>{"--limit=" + word});
      return {};
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
  }
  CLI::App app_;
  std::uint64_t limit_ = 0;
};

TEST_F(CountOption, AreWholeNumbers) {
  EXPECT_EQ(trouble_with("0"), "");
  EXPECT_EQ(trouble_with("18446744073709551615"), "");
  EXPECT_EQ(limit_, ~0ull);
  EXPECT_EQ(trouble_with("99999999999999999999999"), "");
  EXPECT_EQ(limit_, ~0ull);
  EXPECT_EQ(app_.get_option("--limit")->get_type_name(), "N");
}

TEST_F(CountOption, AreNothingElse) {
  for (const char* bad : {"-1", "-18446744073709551615", "1K", "1.5", "all", "- 1"})
    EXPECT_EQ(trouble_with(bad), "--limit: `" + std::string(bad) + "` is no number from 0 on");
}

TEST_F(CountOption, MayHaveALeast) {
  std::uint64_t frames = 0;
  add_count(app_, "--frames", frames, "show the innermost N", 2);
  EXPECT_NO_THROW(app_.parse(std::vector<std::string>{"--frames=2"}));
  EXPECT_NO_THROW(app_.parse(std::vector<std::string>{"--frames=99999999999999999999999"}));
  EXPECT_THROW(app_.parse(std::vector<std::string>{"--frames=1"}), CLI::ValidationError);
}

}  // namespace
}  // namespace tailtrace
