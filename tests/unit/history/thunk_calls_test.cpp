#include <gtest/gtest.h>

#include "decoder/history/calls/calls.h"
#include "tests/support/call_story.h"

namespace tailtrace {
namespace {

// A retpoline calls into its own middle, and puts the place to go to where that would return to.
TEST(Calls, OfAThunkByItselfThatOverwriteTheReturnAreParts) {
  CallStory story({"main", "thunk", "f", ""});
  story.call("thunk").call_into("thunk", 16).ret_to("f", 0);
  story.call("thunk").call_into("thunk", 16).ret_to("", 32);
  story.ret_to("f", 5).ret_to("main", 3);
  EXPECT_EQ(story.told(),
            "main:0:1-2 thunk:1:3-4 thunk:1:5-6 f:2:7-8 thunk:3:9-10 thunk:3:11-12 :4:13-14 "
            "f:2:15-16 main:0:17-17");
  EXPECT_TRUE(story.calls().at(4).tail_called);
  // A subroutine of its own returns.
  EXPECT_EQ(CallStory({"main", "f"}).call("f").call_into("f", 16).ret().ret().told(),
            "main:0:1-2 f:1:3-4 f:2:5-6 f:1:7-8 main:0:9-9");
}

}  // namespace
}  // namespace tailtrace
