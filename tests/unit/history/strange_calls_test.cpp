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

// The outer of both calls says where the function is to return to (-mindirect-branch=thunk-inline).
TEST(Calls, ThroughAnInlinedThunkAreOfWhatHasIt) {
  CallStory story({"main", "f", ""});
  story.call_into("main", 16).call_into("main", 32).ret_to("f", 0).ret_to("main", 3);
  story.call_into("main", 48).call_into("main", 64).ret_to("", 32).ret_to("main", 6);
  EXPECT_EQ(story.told(),
            "main:0:1-2 main:0:3-4 main:0:5-6 f:1:7-8 main:0:9-10 main:0:11-12 main:0:13-14 "
            ":1:15-16 main:0:17-17");
  EXPECT_FALSE(story.calls().at(4).tail_called);
  EXPECT_EQ(story.calls().first_part(9), 1u);
}

// In frames of 256 bytes, and near each other.
TEST(Calls, ThroughThunksWithoutANameAreOfWhatCallsThem) {
  CallStory story({"main", "", "f"});
  story.without_entry("").with_frames();
  story.call_into("", 0x100).call_into("", 0x120).call_into("", 0x130).ret_to("f", 0);
  story.ret_to("", 0x103).call_into("", 0x200).call_into("", 0x210).ret_to("f", 0);
  EXPECT_EQ(story.ret_to("", 0x106).told(),
            "main:0:1-2 :1:3-4 :1:5-6 :1:7-8 f:2:9-10 :1:11-12 :2:13-14 :2:15-16 f:3:17-18 "
            ":1:19-19");
}

// musl's sigsetjmp calls setjmp, which a siglongjmp goes back to when both have returned.
TEST(Calls, OfAFunctionThatReturnsTwiceByAnotherOneBeginAgain) {
  CallStory story({"main", "sigsetjmp", "setjmp", "f", "g", "longjmp"});
  story.call("f").call("sigsetjmp").call("setjmp").ret().ret().jump("f", 64).call("g");
  story.call("longjmp").switch_by_jump("sigsetjmp", 3).ret_to("f", 3).jump("f", 99);
  story.ret_to("main", 3);
  EXPECT_EQ(story.told(),
            "main:0:1-2 f:1:3-4 sigsetjmp:2:5-6 setjmp:3:7-8 sigsetjmp:2:9-10 f:1:11-14 g:2:15-16 "
            "longjmp:3:17-18 sigsetjmp:2:19-20 f:1:21-24 main:0:25-25");
  EXPECT_EQ(story.calls().at(9).caller, 6u);
  // One that is still being called goes on, whatever its name.
  CallStory open({"main", "try_setjmp", "setjmp", "longjmp"});
  open.call("try_setjmp").call("setjmp").ret().jump("try_setjmp", 64).call("longjmp");
  open.switch_by_jump("try_setjmp", 3).jump("try_setjmp", 99).ret_to("main", 3);
  EXPECT_EQ(open.told(),
            "main:0:1-2 try_setjmp:1:3-4 setjmp:2:5-6 try_setjmp:1:7-10 longjmp:2:11-12 "
            "try_setjmp:1:13-16 main:0:17-17");
}

// All but the unwinder was stripped of its names.
TEST(Calls, ThatTheUnwinderLeavesReturnToWhoCatchesWithoutAName) {
  CallStory story({"main", "", "_Unwind_RaiseException", "_Unwind_Resume"});
  story.without_entry("").with_frames();
  story.call_into("", 0x100).call_into("", 0x200).call_into("", 0x200).call_into("", 0x300);
  story.call("_Unwind_RaiseException").switch_by_jump("", 0x240).call("_Unwind_Resume");
  story.switch_by_jump("", 0x240).call("_Unwind_Resume").switch_by_jump("", 0x140);
  EXPECT_EQ(story.ret_to("main", 3).told(),
            "main:0:1-2 :1:3-4 :2:5-6 :3:7-8 :4:9-10 _Unwind_RaiseException:5:11-12 :3:13-14 "
            "_Unwind_Resume:4:15-16 :2:17-18 _Unwind_Resume:3:19-20 :1:21-22 main:0:23-23");
  EXPECT_EQ(story.calls().at(11).earlier, 2u);
}

// Nor has the unwinder a name, as in a static program: its last stretch goes on in who catches.
TEST(Calls, ThatAnUnwinderWithoutANameLeavesReturnToWhoCatches) {
  CallStory story({"main", "", "f"});
  story.without_entry("").with_frames();
  story.call_into("", 0x100).call_into("", 0x200).call_into("", 0x200).call_into("", 0x300);
  story.call_into("", 0x800).call("f").ret().switch_by_jump("", 0x240).call_into("", 0x900);
  story.switch_by_jump("", 0x240).call_into("", 0x900).switch_by_jump("", 0x140);
  EXPECT_EQ(story.ret_to("main", 3).told(),
            "main:0:1-2 :1:3-4 :2:5-6 :3:7-8 :4:9-10 :5:11-12 f:6:13-14 :3:15-18 :2:19-22 "
            ":1:23-26 main:0:27-27");
  EXPECT_EQ(story.calls().at(6).later, 0u);
  EXPECT_EQ(story.calls().at(10).earlier, 2u);
}

// To behind the call of `setjmp`, which the one that jumps may have made, too.
TEST(Calls, ThatALongjmpWithoutANameLeavesReturnToWhoHadCalled) {
  CallStory story({"main", "", "f"});
  story.without_entry("").with_frames();
  story.call_into("", 0x100).call_into("", 0x800).ret().call_into("", 0x200).call("f").ret();
  story.call_into("", 0x900).switch_by_jump("", 0x103).call("f").ret();
  story.call_into("", 0x900).switch_by_jump("", 0x103);
  EXPECT_EQ(story.told(),
            "main:0:1-2 :1:3-4 :2:5-6 :1:7-8 :2:9-10 f:3:11-12 :2:13-14 :1:15-18 f:2:19-20 "
            ":1:21-22 :1:23-25");
}

}  // namespace
}  // namespace tailtrace
