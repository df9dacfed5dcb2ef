#include "decoder/history/calls/calls.h"

#include <gtest/gtest.h>

#include "tests/support/call_story.h"

namespace tailtrace {
namespace {

TEST(Calls, ComeAndGoInTheFunctionsThatCalled) {
  CallStory story({"main", "f", "g"});
  EXPECT_EQ(story.call("f").call("g").ret().ret().told(),
            "main:0:1-2 f:1:3-4 g:2:5-6 f:1:7-8 main:0:9-9");
  EXPECT_EQ(story.calls().at(3).caller, 2u);
  EXPECT_EQ(story.calls().at(4).earlier, 2u);
  EXPECT_EQ(story.calls().at(2).later, 4u);
  EXPECT_EQ(story.calls().at(4).caller, 1u);
  EXPECT_EQ(story.calls().at(1).later, 5u);
}

TEST(Calls, OfAFunctionByItselfAreLevelsOfTheirOwn) {
  CallStory story({"main", "f"});
  story.call("f").jump("f", 0x10).call("f").jump("f", 0x40);
  EXPECT_EQ(story.ret().ret().told(), "main:0:1-2 f:1:3-6 f:2:7-10 f:1:11-12 main:0:13-13");
}

TEST(Calls, ToTheNextInstructionAreNone) {
  EXPECT_EQ(CallStory({"main"}).call_next().told(), "main:0:1-3");
}

TEST(Calls, ThatJumpAreTailCallsAndReturnPastTheJumper) {
  CallStory story({"main", "f", "g"});
  EXPECT_EQ(story.call("f").jump("g").ret().told(), "main:0:1-2 f:1:3-4 g:2:5-6 main:0:7-7");
  EXPECT_TRUE(story.calls().at(3).tail_called);
  EXPECT_FALSE(story.calls().at(2).tail_called);
}

// A jump into the middle of another function is no call, unless nobody knows where it begins.
TEST(Calls, ThatJumpIntoAFunctionsMiddleOnlySwitch) {
  EXPECT_EQ(
      CallStory({"main", "f", "f.cold"}).call("f").jump("f.cold", 4).jump("f", 9).ret().told(),
      "main:0:1-2 f:1:3-4 f.cold:1:5-6 f:1:7-8 main:0:9-9");
  EXPECT_EQ(CallStory({"main", "f"}).without_entry("f").jump("f", 4).told(), "main:0:1-2 f:1:3-3");
}

// It goes there and back while the same function is on the stack.
TEST(Calls, OfAFunctionHaveItsPartThatIsPutApart) {
  CallStory story({"main", "f", "f.cold"});
  story.call("f").jump("f.cold").call("f").jump("f.cold", 8).jump("f", 9).ret().jump("f", 9).ret();
  EXPECT_EQ(story.told(),
            "main:0:1-2 f:1:3-4 f.cold:1:5-6 f:2:7-8 f.cold:2:9-10 f:2:11-12 f.cold:1:13-14 "
            "f:1:15-16 main:0:17-17");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(3).earlier, 2u);
  EXPECT_FALSE(calls.at(3).tail_called);
  EXPECT_EQ(calls.at(4).earlier, 0u);
  EXPECT_EQ(calls.at(6).earlier, 5u);
  EXPECT_EQ(calls.at(7).earlier, 3u);
  EXPECT_EQ(calls.at(8).earlier, 7u);
  EXPECT_EQ(calls.at(8).caller, 1u);
  EXPECT_EQ(calls.at(9).earlier, 1u);
}

TEST(Calls, OfAFunctionAreCaughtInItsPartThatIsPutApart) {
  CallStory story({"main", "f", "f.cold", "_Unwind_RaiseException"});
  story.call("f").call("_Unwind_RaiseException").jump("f.cold").jump("f", 9);
  EXPECT_EQ(story.ret_to("main", 3).told(),
            "main:0:1-2 f:1:3-4 _Unwind_RaiseException:2:5-6 f.cold:1:7-8 f:1:9-10 main:0:11-11");
  EXPECT_EQ(story.calls().at(4).earlier, 2u);
  EXPECT_EQ(story.calls().at(5).earlier, 4u);
}

// It is called by what gave it more (-fsplit-stack), within itself.
TEST(Calls, OfAFunctionThatIsGivenMoreStackGoOnInside) {
  CallStory story({"main", "f", "__morestack", "g"});
  story.call("f").call("__morestack").call_into("f", 0x40).call("f").call("__morestack");
  story.call_into("f", 0x40).call("g").ret().ret().ret().ret().ret().ret();
  EXPECT_EQ(story.ret().told(),
            "main:0:1-2 f:1:3-4 __morestack:2:5-6 f:1:7-8 f:2:9-10 __morestack:3:11-12 f:2:13-14 "
            "g:3:15-16 f:2:17-18 __morestack:3:19-20 f:2:21-22 f:1:23-24 __morestack:2:25-26 "
            "f:1:27-28 main:0:29-29");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(4).earlier, 2u);
  EXPECT_EQ(calls.at(5).caller, 4u);
  EXPECT_EQ(calls.first_part(11), 5u);
  EXPECT_EQ(calls.first_part(14), 2u);
  EXPECT_EQ(calls.last_part(2), 14u);
  EXPECT_EQ(calls.at(13).earlier, 3u);
  EXPECT_EQ(calls.at(15).earlier, 1u);
}

// As Go's.
TEST(Calls, OfAFunctionThatIsGivenMoreStackBeginAgain) {
  CallStory story({"main", "f", "runtime.morestack"});
  story.call("f").jump("f", 0x10).call("runtime.morestack").ret().jump("f").jump("f", 0x20);
  EXPECT_EQ(story.ret().told(),
            "main:0:1-2 f:1:3-6 runtime.morestack:2:7-8 f:1:9-10 f:1:11-14 main:0:15-15");
  EXPECT_EQ(story.calls().at(5).earlier, 4u);
}

TEST(Calls, ThatWereMadeBeforeTheRecordBeganGiveALevelFurtherOut) {
  EXPECT_EQ(CallStory({"g", "f", "main", "h"}).ret_to("f", 8).ret_to("main", 8).call("h").told(),
            "g:2:1-2 f:1:3-4 main:0:5-6 h:1:7-7");
}

TEST(Calls, TellWhetherTheirBeginWasSeen) {
  // Of each function the first part that is there.
  auto begun_before = [](CallStory& story, Range range) {
    story.told(range);
    std::string names;
    for (std::uint64_t n = 1; n <= story.calls().size(); ++n)
      if (const CallSegment s = story.calls().at(n); s.begun_before)
        names += s.function->name + " ";
    return names;
  };
  CallStory story({"main", "f", "g"});
  story.call("f").call("g").ret().ret().call("g").told();
  EXPECT_EQ(begun_before(story, {1, 11}), "");
  EXPECT_EQ(begun_before(story, {3, 11}), "main ");
  EXPECT_EQ(begun_before(story, {6, 11}), "g f main ");
  CallStory cut({"main", "f", "h"});
  cut.call("f").jump("f", 0x40).gap("f", 0x80).ret_to("main", 0x80);
  cut.call("f").jump("f", 0x40).gap("h", 0x80).told();
  EXPECT_EQ(begun_before(cut, {1, cut.history().size()}), "h ");
}

TEST(Calls, ThatReturnElsewhereBeginAnotherStack) {
  // `switcher` was called, and returns into a function that nobody called.
  CallStory story({"main", "switcher", "other"});
  EXPECT_EQ(story.call("switcher").ret_to("other", 8).call("switcher").ret_to("main", 3).told(),
            "main:0:1-2 switcher:1:3-4 other:0:5-6 switcher:1:7-8 main:0:9-9");
}

// A return to behind a call that nothing has come back to shows which stack it is.
TEST(Calls, OfStacksThatTakeTurnsGoOnWhereTheyWereLeft) {
  CallStory story({"main", "switch", "fiber", "f"});
  story.call("switch").switch_to("fiber", 0).call("f").call("switch").switch_to("main", 3);
  story.call("switch").switch_to("f", 3).ret_to("fiber", 3).call("switch").switch_to("main", 6);
  EXPECT_EQ(story.told(),
            "main:0:1-2 switch:1:3-4 fiber:0:5-6 f:1:7-8 switch:2:9-10 main:0:11-12 switch:1:13-14 "
            "f:1:15-16 fiber:0:17-18 switch:1:19-20 main:0:21-21");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(2).caller, 1u);
  EXPECT_EQ(calls.at(3).caller, 0u);
  EXPECT_FALSE(calls.at(3).begun_before);
  EXPECT_EQ(calls.at(8).earlier, 4u);
  EXPECT_EQ(calls.at(8).caller, 3u);
  EXPECT_EQ(calls.at(11).earlier, 6u);
}

TEST(Calls, OfStacksThatTakeTurnsByJumpsGoOnWhereTheyWereLeft) {
  CallStory story({"main", "f", "switch", "fiber"});
  story.call("f").call("switch").switch_by_jump("fiber", 0).call("switch").switch_by_jump("f", 3);
  story.call("switch").switch_by_jump("fiber", 3).call("switch").switch_by_jump("f", 6);
  EXPECT_EQ(story.told(),
            "main:0:1-2 f:1:3-4 switch:2:5-6 fiber:0:7-8 switch:1:9-10 f:1:11-12 switch:2:13-14 "
            "fiber:0:15-16 switch:1:17-18 f:1:19-19");
  EXPECT_EQ(story.calls().at(4).caller, 0u);
  EXPECT_EQ(story.calls().at(8).earlier, 4u);
}

// Both are left by the same function: whose it was shows where it returns.
TEST(Calls, OfStacksThatAreLeftInOneFunctionAreToldApartByItsCaller) {
  CallStory story({"main", "leave", "switch", "fiber", "f"});
  story.call("leave").call("switch").switch_to("fiber", 0).call("leave").call("switch");
  story.switch_to("leave", 3).call("f").ret().ret_to("main", 3).call("leave").call("switch");
  story.switch_to("leave", 3).call("f").ret().ret_to("fiber", 3).call("f");
  EXPECT_EQ(story.told(),
            "main:0:1-2 leave:1:3-4 switch:2:5-6 fiber:0:7-8 leave:1:9-10 switch:2:11-12 "
            "leave:1:13-14 f:2:15-16 leave:1:17-18 main:0:19-20 leave:1:21-22 switch:2:23-24 "
            "leave:1:25-26 f:2:27-28 leave:1:29-30 fiber:0:31-32 f:1:33-33");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(7).earlier, 2u);
  EXPECT_EQ(calls.at(7).caller, 1u);
  EXPECT_EQ(calls.at(9).caller, 1u);
  EXPECT_EQ(calls.at(10).earlier, 1u);
  EXPECT_EQ(calls.at(11).later, 0u);
  EXPECT_EQ(calls.at(13).earlier, 5u);
  EXPECT_EQ(calls.at(15).caller, 4u);
  EXPECT_EQ(calls.at(16).earlier, 4u);
}

TEST(Calls, OfStacksThatAreLeftInOneFunctionByAnotherAreToldApartByTheOutermost) {
  CallStory story({"main", "wait", "leave", "switch", "fiber", "f"});
  story.call("wait").call("leave").call("switch").switch_to("fiber", 0).call("f");
  story.call("wait").call("leave").call("switch");
  story.switch_to("leave", 3).ret_to("wait", 3).ret_to("main", 3);
  EXPECT_EQ(story.told(),
            "main:0:1-2 wait:1:3-4 leave:2:5-6 switch:3:7-8 fiber:0:9-10 f:1:11-12 wait:2:13-14 "
            "leave:3:15-16 switch:4:17-18 leave:2:19-20 wait:1:21-22 main:0:23-23");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(10).earlier, 3u);
  EXPECT_EQ(calls.at(10).caller, 2u);
  EXPECT_EQ(calls.at(11).earlier, 2u);
  EXPECT_EQ(calls.at(11).caller, 1u);
  EXPECT_EQ(calls.at(12).earlier, 1u);
  EXPECT_EQ(calls.at(8).later, 0u);
}

// All of it has no name, as where a program was stripped.
TEST(Calls, OfStacksWhoseFunctionsAreNotKnownGoOnWhereTheyWereLeft) {
  CallStory story({"main", "switch", ""});
  story.call("").call("switch").switch_to("", 0x100).call("switch").switch_to("", 3);
  EXPECT_EQ(story.call("switch").switch_to("", 0x103).told(),
            "main:0:1-2 :1:3-4 switch:2:5-6 :0:7-8 switch:1:9-10 :1:11-12 switch:2:13-14 :0:15-15");
  EXPECT_EQ(story.calls().at(4).earlier, 0u);
  EXPECT_EQ(story.calls().at(6).earlier, 2u);
  EXPECT_EQ(story.calls().at(8).earlier, 4u);
}

TEST(Calls, OfStacksThatTakeTurnsAcrossAGapAreNotGuessed) {
  CallStory story({"main", "switch", "fiber", "f"});
  story.call("switch").switch_to("fiber", 0).call("f").gap("f", 0).call("switch");
  EXPECT_EQ(story.switch_to("main", 3).told(),
            "main:0:1-2 switch:1:3-4 fiber:0:5-6 [gap]:0:7-7 f:0:8-9 switch:1:10-11 main:0:12-12");
  EXPECT_EQ(story.calls().at(7).earlier, 0u);
}

// As where calls and jumps through a register are made so, against speculation.
TEST(Calls, ThatReturnToAFunctionsBeginAreTailCalls) {
  CallStory story({"main", "thunk", "f"});
  EXPECT_EQ(story.call("thunk").ret_to("f", 0).ret().told(),
            "main:0:1-2 thunk:1:3-4 f:2:5-6 main:0:7-7");
  EXPECT_TRUE(story.calls().at(3).tail_called);
  // Without a name it must have begun there, unless it is behind a call.
  CallStory nameless({"", "thunk", "main", "f"});
  nameless.call("thunk").gap("main", 0).call("thunk").ret_to("", 9).jump("f");
  nameless.call("thunk").ret_to("", 32).ret().ret().call("thunk").ret_to("", 3);
  EXPECT_EQ(nameless.told(),
            ":0:1-2 [gap]:0:3-3 main:0:4-5 thunk:1:6-7 :2:8-9 f:3:10-11 thunk:4:12-13 :5:14-15 "
            "f:3:16-17 main:0:18-19 thunk:1:20-21 :0:22-22");
}

// As _dl_start returns to _dl_start_user, which follows the call of it in _start.
TEST(Calls, ThatReturnToTheNextFunctionsBeginGoOnInTheCaller) {
  CallStory story({"main", "rest", "f"});
  story.jump("main", 0xfffd).call("f").ret().call("f").ret();
  EXPECT_EQ(story.told(), "main:0:1-4 f:1:5-6 rest:0:7-8 f:1:9-10 rest:0:11-11");
  EXPECT_FALSE(story.calls().at(3).tail_called);
  EXPECT_EQ(story.calls().at(3).caller, 0u);
  EXPECT_EQ(story.calls().at(5).earlier, 3u);
}

TEST(Calls, ThroughTheLazyBinderAreTailCalls) {
  EXPECT_EQ(CallStory({"main", "plt", "_dl_runtime_resolve", "f"})
                .call("plt")
                .jump("_dl_runtime_resolve")
                .ret_to("f", 0)
                .ret()
                .told(),
            "main:0:1-2 plt:1:3-4 _dl_runtime_resolve:2:5-6 f:3:7-8 main:0:9-9");
}

TEST(Calls, ThatTheUnwinderLeavesByAJumpReturnToWhoCatches) {
  EXPECT_EQ(CallStory({"main", "f", "_Unwind_RaiseException"})
                .call("f")
                .call("_Unwind_RaiseException")
                .jump("main", 0x40)
                .told(),
            "main:0:1-2 f:1:3-4 _Unwind_RaiseException:2:5-6 main:0:7-7");
}

TEST(Calls, OfTheUnwinderThroughALinkageTableWithoutANameAreTailCalls) {
  CallStory story({"main", "_Unwind_Find_FDE@plt", "", "_dl_runtime_resolve", "g"});
  story.without_entry("").call("").call("_Unwind_Find_FDE@plt").jump("", 0x100);
  EXPECT_EQ(story.call("_dl_runtime_resolve").ret().call("g").told(),
            "main:0:1-2 :1:3-4 _Unwind_Find_FDE@plt:2:5-6 :3:7-8 _dl_runtime_resolve:4:9-10 "
            ":5:11-12 g:6:13-13");
}

// It lands behind a call that did not return either, but in an earlier call of that function.
TEST(Calls, ThatWereUnwoundAreNotComeBackTo) {
  CallStory story({"main", "f", "g", "_Unwind_RaiseException"});
  story.call("f").jump("f", 0x20).call("_Unwind_RaiseException").jump("main", 0x40);
  story.call("f").jump("f", 0x60).call("g").call("_Unwind_RaiseException").jump("f", 0x23);
  EXPECT_EQ(story.told(),
            "main:0:1-2 f:1:3-6 _Unwind_RaiseException:2:7-8 main:0:9-10 f:1:11-14 g:2:15-16 "
            "_Unwind_RaiseException:3:17-18 f:1:19-19");
  EXPECT_EQ(story.calls().at(8).earlier, 5u);
}

// As corrupt records say: who resumes was jumped from.
TEST(Calls, ThatResumeAnUnwindingForNobodyKnownLandFurtherOut) {
  EXPECT_EQ(CallStory({"f", "_Unwind_Resume"}).jump("_Unwind_Resume").jump("f", 9).told(),
            "f:1:1-2 _Unwind_Resume:2:3-4 f:0:5-5");
}

// The same code cleans up in each of the calls.
TEST(Calls, ThatCleanUpAreLeftOneByOneWhenTheUnwindingIsResumed) {
  CallStory story({"main", "f", "_Unwind_RaiseException", "_Unwind_Resume"});
  story.call("f").jump("f", 0x10).call("f").jump("f", 0x20).call("_Unwind_RaiseException");
  story.jump("f", 0x40).call("_Unwind_Resume").jump("f", 0x40).call("_Unwind_Resume");
  EXPECT_EQ(story.jump("main", 0x40).told(),
            "main:0:1-2 f:1:3-6 f:2:7-10 _Unwind_RaiseException:3:11-12 f:2:13-14 "
            "_Unwind_Resume:3:15-16 f:1:17-18 _Unwind_Resume:2:19-20 main:0:21-21");
  EXPECT_EQ(story.calls().at(5).earlier, 3u);
  EXPECT_EQ(story.calls().at(7).earlier, 2u);
  EXPECT_EQ(story.calls().at(9).earlier, 1u);
  // Nobody saw the outer call begin.
  EXPECT_EQ(story.told({8, 18}),
            "f:1:8-10 _Unwind_RaiseException:2:11-12 f:1:13-14 _Unwind_Resume:2:15-16 f:0:17-18");
  EXPECT_EQ(story.calls().at(1).caller, 5u);
}

// GDB knows that of the unwinder only.
TEST(Calls, ThatALongjmpLeavesReturnToWhoHadCalled) {
  CallStory story({"main", "f", "longjmp", "g"});
  story.call("f").call("longjmp").jump("main", 0x40).call("g");
  EXPECT_EQ(story.told(), "main:0:1-2 f:1:3-4 longjmp:2:5-6 main:0:7-8 g:1:9-9");
  EXPECT_EQ(story.calls().at(4).earlier, 1u);
}

TEST(Calls, ThatALongjmpLeavesReturnToWhoHadCalledSetjmpWithoutAName) {
  CallStory story({"main", "", "__sigsetjmp", "f", "longjmp"});
  story.without_entry("").call("").call("__sigsetjmp").ret().jump("", 0x100);
  // A call within it does so, too, and has returned.
  story.call("").call("__sigsetjmp").ret().jump("", 0x180).ret();
  story.call("f").call("longjmp").switch_by_jump("", 3).jump("", 0x200).ret_to("main", 3);
  EXPECT_EQ(story.told(),
            "main:0:1-2 :1:3-4 __sigsetjmp:2:5-6 :1:7-10 :2:11-12 __sigsetjmp:3:13-14 :2:15-18 "
            ":1:19-20 f:2:21-22 longjmp:3:23-24 :1:25-28 main:0:29-29");
}

// GDB takes a handler for a switch, and has lost the stack behind it.
TEST(Calls, OfASignalHandlerAreOfWhatItInterruptsWhichGoesOnBehindIt) {
  CallStory story({"main", "f", "handler", "restorer", "g"});
  story.call("f").signal("handler").call("g").ret().ret_to("restorer", 0).sigreturn();
  EXPECT_EQ(story.call("g").ret().ret().told(),
            "main:0:1-2 f:1:3-3 handler:2:4-5 g:3:6-7 handler:2:8-9 restorer:2:10-11 f:1:12-13 "
            "g:2:14-15 f:1:16-17 main:0:18-18");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(3).caller, 2u);
  EXPECT_EQ(calls.at(6).caller, 2u);
  EXPECT_EQ(calls.at(7).earlier, 2u);
  EXPECT_EQ(calls.at(2).later, 7u);
  EXPECT_EQ(calls.at(9).earlier, 7u);
  EXPECT_EQ(calls.at(7).caller, 1u);
}

TEST(Calls, OfSignalHandlersWithinEachOtherComeBackInTurn) {
  CallStory story({"main", "one", "two", "restorer"});
  story.signal("one").signal("two").ret_to("restorer", 0).sigreturn();
  EXPECT_EQ(story.ret_to("restorer", 0).sigreturn().told(),
            "main:0:1-1 one:1:2-2 two:2:3-4 restorer:2:5-6 one:1:7-8 restorer:1:9-10 main:0:11-11");
}

// The second comes before the first instruction of the first one's handler.
TEST(Calls, OfTwoSignalHandlersAtOnceComeBackInTurn) {
  CallStory story({"main", "one", "two", "restorer"});
  story.signal("one").signal_at_once("two").ret_to("restorer", 0).sigreturn();
  EXPECT_EQ(story.ret_to("restorer", 0).sigreturn().told(),
            "main:0:1-1 two:1:2-3 restorer:1:4-5 one:1:6-7 restorer:1:8-9 main:0:10-10");
}

// As the kernel gives a program what came while the handler ran.
TEST(Calls, OfASignalHandlerBehindAnotherAreOfWhatBothInterrupt) {
  CallStory story({"main", "one", "two", "restorer"});
  story.signal("one").ret_to("restorer", 0).sigreturn().signal_at_once("two");
  EXPECT_EQ(story.ret_to("restorer", 0).sigreturn().told(),
            "main:0:1-1 one:1:2-3 restorer:1:4-5 two:1:6-7 restorer:1:8-9 main:0:10-10");
  EXPECT_EQ(story.calls().at(4).caller, 1u);
}

// As one does that steps over the instruction which was at fault.
TEST(Calls, OfASignalHandlerThatGoesOnElsewhereInTheFunctionAreOfItAsWell) {
  CallStory story({"main", "handler", "restorer"});
  story.signal("handler").ret_to("restorer", 0).sigreturn_to("main", 0x40);
  EXPECT_EQ(story.told(), "main:0:1-1 handler:1:2-3 restorer:1:4-5 main:0:6-6");
  EXPECT_EQ(story.calls().at(4).earlier, 1u);
}

TEST(Calls, OfASignalHandlerWhoseBeginIsLostAreNotTakenForLaterOnes) {
  CallStory story({"main", "f", "handler"});
  story.signal("handler").gap("f", 0).jump("handler");
  EXPECT_EQ(story.told(), "main:0:1-1 [gap]:0:2-2 f:0:3-4 handler:1:5-5");
  EXPECT_TRUE(story.calls().at(4).tail_called);
}

// What was called or returned to is reached behind the handler only.
TEST(Calls, OfASignalHandlerBeforeAFunctionsFirstInstruction) {
  CallStory called({"main", "f", "handler", "restorer"});
  called.call("f").signal_at_once("handler").ret_to("restorer", 0).sigreturn();
  EXPECT_EQ(called.ret().told(), "main:0:1-2 handler:1:3-4 restorer:1:5-6 f:1:7-8 main:0:9-9");
  CallStory returned({"main", "f", "handler", "restorer"});
  returned.call("f").ret().signal_at_once("handler").ret_to("restorer", 0).sigreturn();
  EXPECT_EQ(returned.told(), "main:0:1-2 f:1:3-4 handler:1:5-6 restorer:1:7-8 main:0:9-9");
  EXPECT_EQ(returned.calls().at(5).earlier, 1u);
}

// The next signal comes where the last one did.
TEST(Calls, OfASignalHandlerThatALongjmpLeftAreNotTakenForLaterOnes) {
  CallStory story({"main", "f", "handler", "longjmp", "g"});
  auto round = [&](std::uint64_t back_at) -> CallStory& {
    story.call("f").signal_in_system_call("handler").call("longjmp");
    return story.jump("main", back_at);
  };
  round(0x40).call("g");
  round(0x80);
  EXPECT_EQ(story.told(),
            "main:0:1-2 f:1:3-4 handler:2:5-6 longjmp:3:7-8 main:0:9-10 g:1:11-12 f:2:13-14 "
            "handler:3:15-16 longjmp:4:17-18 main:0:19-19");
  EXPECT_EQ(story.calls().at(8).caller, 7u);
}

TEST(Calls, OfADebuggerAreOfWhatStoodThere) {
  CallStory story({"main", "f", "mmap", "start"});
  story.call("f").call_by_debugger("mmap", "start").call_by_debugger("mmap", "start");
  EXPECT_EQ(story.ret().told(), "main:0:1-2 mmap:1:3-4 mmap:1:5-6 f:1:7-8 main:0:9-9");
  EXPECT_EQ(story.calls().at(4).caller, 1u);
}

TEST(Calls, OfAHandlerOfAFaultThatALongjmpLeftAreNotTakenForLaterOnes) {
  CallStory story({"main", "f", "handler", "longjmp", "g"});
  story.call("f").fault("handler").call("longjmp").jump("main", 0x40).call("g").call("f");
  EXPECT_EQ(story.fault("handler").call("longjmp").jump("main", 0x80).told(),
            "main:0:1-2 f:1:3-3 handler:2:4-5 longjmp:3:6-7 main:0:8-9 g:1:10-11 f:2:12-12 "
            "handler:3:13-14 longjmp:4:15-16 main:0:17-17");
  EXPECT_EQ(story.calls().at(8).caller, 7u);
}

TEST(Calls, OfASignalHandlerInWhichALongjmpLeftAnotherComeBack) {
  CallStory story({"main", "one", "two", "longjmp", "restorer"});
  story.signal("one").signal("two").call("longjmp").jump("one", 0x40);
  story.ret_to("restorer", 0).sigreturn_to("main", 1);
  EXPECT_EQ(story.told(),
            "main:0:1-1 one:1:2-2 two:2:3-4 longjmp:3:5-6 one:1:7-8 restorer:1:9-10 main:0:11-11");
  EXPECT_EQ(story.calls().at(7).earlier, 1u);
}

TEST(Calls, OfASignalHandlerThatGoesOnElsewhereLeaveWhatItInterrupted) {
  CallStory story({"main", "f", "handler", "restorer", "panic"});
  story.call("f").signal("handler").ret_to("restorer", 0).sigreturn_to("panic");
  EXPECT_EQ(story.told(), "main:0:1-2 f:1:3-3 handler:2:4-5 restorer:2:6-7 panic:2:8-8");
  EXPECT_EQ(story.calls().at(5).caller, 2u);
}

// Only where it goes back tells what it was.
TEST(Calls, OfASignalHandlerThatBeganBeforeAreOfWhatItGoesBackTo) {
  CallStory story({"handler", "restorer", "g", "outer", "main"});
  story.call("g").ret().ret_to("restorer", 0).sigreturn_to("outer", 0x40).ret_to("restorer", 0);
  EXPECT_EQ(story.sigreturn_to("main", 0x40).call("g").told(),
            "handler:4:1-2 g:5:3-4 handler:4:5-6 restorer:3:7-8 outer:2:9-10 restorer:1:11-12 "
            "main:0:13-14 g:1:15-15");
  const CallHistory& calls = story.calls();
  EXPECT_EQ(calls.at(1).caller, 4u);
  EXPECT_EQ(calls.at(4).caller, 5u);
  EXPECT_EQ(calls.at(5).caller, 6u);
  EXPECT_EQ(calls.at(6).caller, 7u);
  EXPECT_TRUE(calls.at(7).begun_before);
}

TEST(Calls, AreConnectedAcrossAGapWhereTheyMatch) {
  CallStory story({"main", "f", "g"});
  story.call("f").call("g").jump("g", 0x40).gap("g", 0x80);
  EXPECT_EQ(story.ret_to("f", 0x80).ret_to("main", 0x80).told(),
            "main:0:1-2 f:1:3-4 g:2:5-6 [gap]:2:7-7 g:2:8-9 f:1:10-11 main:0:12-12");
  EXPECT_EQ(story.calls().gaps(), 1u);
  // One function deeper than before.
  CallStory deeper({"main", "f", "g"});
  deeper.call("f").gap("g", 0x80).ret_to("f", 0x80).ret_to("main", 0x80);
  EXPECT_EQ(deeper.told(), "main:0:1-2 [gap]:0:3-3 g:2:4-5 f:1:6-7 main:0:8-8");
}

TEST(Calls, AreNotConnectedAcrossAGapWhereNothingMatches) {
  EXPECT_EQ(CallStory({"main", "f", "g", "h"}).call("f").gap("g", 0x80).call("h").told(),
            "main:0:1-2 [gap]:0:3-3 g:0:4-5 h:1:6-6");
}

TEST(Calls, OfAPartOfAHistoryAreNumberedFromItsBeginning) {
  CallStory story({"main", "f", "g"});
  story.call("f").call("g").ret().ret().told();
  EXPECT_EQ(story.told({4, 8}), "f:0:4-4 g:1:5-6 f:0:7-8");
  EXPECT_EQ(story.told({6, 6}), "g:0:6-6");
  EXPECT_EQ(story.told({1, 0}), "");
}

TEST(Calls, ThatAreVeryDeepAreFollowed) {
  CallStory story({"main", "f"});
  for (int i = 0; i < 20000; ++i) story.call("f").jump("f", i == 19999 ? 0x40 : 0x10);
  for (int i = 0; i < 20000; ++i) story.ret();
  std::string told = story.told();
  EXPECT_TRUE(told.starts_with("main:0:1-2 f:1:3-6 f:2:7-10 ")) << told.substr(0, 80);
  EXPECT_TRUE(told.ends_with(" f:1:119999-120000 main:0:120001-120001"))
      << told.substr(told.size() - 80);
}

// Nothing is looked for on the stack while control stays in a function.
TEST(Calls, OfAVeryDeepStackAreFollowedThroughLoops) {
  CallStory story({"main", "f", "g"});
  for (int i = 0; i < 20000; ++i) story.call("f").jump("f", i == 19999 ? 0x40 : 0x10);
  story.call("g");
  for (int i = 0; i < 20000; ++i) story.jump("g", 0x40);
  const std::string told = story.jump("g", 0x80).ret().told();
  EXPECT_TRUE(told.ends_with(" g:20001:80003-120006 f:20000:120007-120007"))
      << told.substr(told.size() - 80);
}

}  // namespace
}  // namespace tailtrace
