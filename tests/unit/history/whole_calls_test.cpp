#include "decoder/history/calls/whole_calls.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/call_story.h"

namespace tailtrace {
namespace {

enum class Fold : bool { kNo, kYes };

// "<-9--8x2:main": items and times of each, who called it, and "<" where nobody saw it begin.
std::string calls_told(CallStory& story, const char* function, Fold fold,
                       std::uint64_t limit = 100) {
  LocationMatcher named = *functions_named(function, story);
  const WholeCalls found = calls_of(story.calls(), named, limit, fold == Fold::kYes);
  std::string text;
  list_whole_calls_json(
      story.history(), story.calls(), story, found.newest,
      [&](std::string_view line) {
        const auto json = nlohmann::json::parse(line);
        text += (text.empty() ? "" : " ") + std::string(json.contains("begun_before") ? "<" : "") +
                json["first"].dump() + "-" + json["last"].dump();
        if (json.contains("times")) text += "x" + json["times"].dump();
        if (json.contains("caller")) text += ":" + json["caller"]["function"].get<std::string>();
        return true;
      },
      JsonNumbers::kFromNewest);
  return text;
}

CallStory many_calls() {
  CallStory story({"main", "f", "g", "h"});
  auto call_f = [&](int times) {
    for (int i = 0; i < times; ++i) story.call("f").call("g").ret().ret();
  };
  call_f(3);
  story.call("h");
  call_f(2);
  story.ret();
  call_f(1);
  story.told();
  return story;
}

TEST(WholeCalls, AreFromTheirFirstPartToTheirLast) {
  CallStory story = many_calls();
  EXPECT_EQ(calls_told(story, "f", Fold::kNo),
            "-51--46:main -43--38:main -35--30:main -25--20:h -17--12:h -7--2:main");
  EXPECT_EQ(calls_told(story, "f", Fold::kNo, 2), "-17--12:h -7--2:main");
  EXPECT_EQ(calls_told(story, "nothing", Fold::kNo), "");
}

TEST(WholeCalls, ThatOneCallMadeInARowAreOneWhenFolded) {
  CallStory story = many_calls();
  EXPECT_EQ(calls_told(story, "f", Fold::kYes), "-51--30x3:main -25--12x2:h -7--2:main");
  EXPECT_EQ(calls_told(story, "f", Fold::kYes, 2), "-25--12x2:h -7--2:main");
  EXPECT_EQ(calls_told(story, "g", Fold::kYes),
            "-49--48:f -41--40:f -33--32:f -23--22:f -15--14:f -5--4:f");
}

TEST(WholeCalls, ThatBeganBeforeSaySoAndHaveNoCallerThatWasSeen) {
  CallStory story = many_calls();
  const std::uint64_t size = story.history().size();
  story.told({size - 41, size});
  EXPECT_EQ(calls_told(story, "f", Fold::kYes), "<-42--38 -35--30:main -25--12x2:h -7--2:main");
  EXPECT_EQ(calls_told(story, "main", Fold::kYes), "<-37--1");
}

TEST(WholeCalls, AreCountedOnceWithTheirPartThatIsPutApart) {
  CallStory story({"main", "f", "f.cold"});
  story.call("f").jump("f.cold", 4).jump("f", 9).ret().told();
  EXPECT_EQ(calls_told(story, "f", Fold::kNo), "-7--2:main");
  EXPECT_EQ(calls_told(story, "f.cold", Fold::kNo), "");
}

// "... <main-25--20 g-17--8x3": what "..." stands before may be found further back.
std::string tree_told(CallStory& story, std::uint64_t limit) {
  const CallTree tree = newest_whole_calls(story.history(), story.calls(), limit);
  std::string text = tree.is_cut ? "..." : "";
  list_whole_calls_json(
      story.history(), story.calls(), story, tree.calls,
      [&](std::string_view line) {
        const auto json = nlohmann::json::parse(line);
        text += (text.empty() ? "" : " ") + std::string(json.contains("begun_before") ? "<" : "") +
                json.value("function", "?") + json["first"].dump() + "-" + json["last"].dump();
        if (json.contains("times")) text += "x" + json["times"].dump();
        return true;
      },
      JsonNumbers::kFromNewest);
  return text;
}

// main calls f, which calls g three times and h, and leaves h and f open.
CallStory open_calls() {
  CallStory story({"main", "f", "g", "h"});
  story.call("g").ret().call("f");
  for (int i = 0; i < 3; ++i) story.call("g").ret();
  story.call("h").call("g").ret();
  story.told();
  return story;
}

TEST(CallTree, HasTheNewestCallsEachOnceFromItsBeginOn) {
  CallStory story = open_calls();
  EXPECT_EQ(tree_told(story, 100), "main-25--20 g-23--22 f-19--6 g-17--8x3 h-5--1 g-3--2");
}

TEST(CallTree, HasThoseThatEndedLastWhereThereAreMore) {
  CallStory story = open_calls();
  EXPECT_EQ(tree_told(story, 2), "h-5--1 g-3--2");
  EXPECT_EQ(tree_told(story, 4), "f-19--6 g-17--8x3 h-5--1 g-3--2");
}

TEST(CallTree, NamesNoFunctionThatHasNoName) {
  CallStory story({"main", ""});
  story.call("").ret();
  story.told();
  EXPECT_EQ(tree_told(story, 100), "main-5--1 ?-3--2");
}

TEST(CallTree, SaysWhereMoreCouldBeFoundFurtherBack) {
  CallStory story = open_calls();
  const std::uint64_t size = story.history().size();
  story.told({size - 9, size});
  EXPECT_EQ(tree_told(story, 100), "... <f-10--6 g-9--8 h-5--1 g-3--2");
  EXPECT_EQ(tree_told(story, 1), "h-5--1");
}

TEST(WholeCalls, AreOfFunctionsOnly) {
  CallStory story({"main"});
  Result<LocationMatcher> line = functions_named("main.cc:3", story);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().what, "`main.cc:3` is called by nobody");
  EXPECT_FALSE(functions_named("main.cc:", story));
}

}  // namespace
}  // namespace tailtrace
