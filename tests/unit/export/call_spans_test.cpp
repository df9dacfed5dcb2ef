#include "decoder/export/call_spans.h"

#include <gtest/gtest.h>

#include "tests/support/call_story.h"

namespace tailtrace {
namespace {

// "main:1-9 f:3-4": name and items of every span.
std::string spans_told(CallStory& story) {
  story.told();
  std::string text;
  for (const CallSpan& span : call_spans(story.calls()))
    text += (text.empty() ? "" : " ") + span_name(story.calls().at(span.segment)) + ":" +
            std::to_string(span.first) + "-" + std::to_string(span.last);
  return text;
}

TEST(CallSpans, LastAsLongAsWhatWasCalled) {
  CallStory story({"main", "f", "g"});
  story.call("f").call("g").ret().ret().call("g");
  EXPECT_EQ(spans_told(story), "main:1-11 f:3-8 g:5-6 g:11-11");
}

TEST(CallSpans, OfCallersOlderThanTheRecordBeginWithIt) {
  CallStory story({"g", "f", "main", "h"});
  story.ret_to("f", 8).ret_to("main", 8).call("h");
  EXPECT_EQ(spans_told(story), "main:1-7 f:1-4 g:1-2 h:7-7");
}

TEST(CallSpans, HoldAGapWhereTheyGoOnBehindIt) {
  CallStory story({"main", "f", "g"});
  story.call("f").call("g").jump("g", 0x40).gap("g", 0x80).ret_to("f", 0x80);
  EXPECT_EQ(spans_told(story), "main:1-10 f:3-10 g:5-9 (gap):7-7");
  CallStory other({"main", "f", "g", "h"});
  other.call("f").jump("f", 0x40).gap("g", 0x80).call("h");
  EXPECT_EQ(spans_told(other), "main:1-4 f:3-4 (gap):5-5 g:6-8 h:8-8");
}

// On one line only one stack is drawn at a time.
TEST(CallSpans, OfStacksThatTakeTurnsEndAndBeginAnew) {
  CallStory story({"main", "switch", "fiber"});
  story.call("switch").switch_to("fiber", 0).call("switch").switch_to("main", 3).call("switch");
  EXPECT_EQ(spans_told(story.switch_to("fiber", 3)),
            "main:1-4 switch:3-4 fiber:5-8 switch:7-8 main:9-12 switch:11-12 fiber:13-13");
}

}  // namespace
}  // namespace tailtrace
