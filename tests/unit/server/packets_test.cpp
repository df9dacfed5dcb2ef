// What is read out of packets: thread ids, stop replies, requests to run, transfers, features.
#include <gmock/gmock.h>

#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/frame.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/signalled_threads.h"
#include "plugin/server/rsp/stop_reply.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace::rsp {
namespace {

TEST(ThreadIds, OfAllForms) {
  EXPECT_EQ(parse_thread("p1f.2a"), (ThreadSelector{0x1f, 0x2a}));
  EXPECT_EQ(parse_thread("p1f.-1"), (ThreadSelector{0x1f, ThreadSelector::kAll}));
  EXPECT_EQ(parse_thread("p1f"), (ThreadSelector{0x1f, ThreadSelector::kAll}));
  EXPECT_EQ(parse_thread("p-1.-1"), (ThreadSelector{ThreadSelector::kAll, ThreadSelector::kAll}));
  EXPECT_EQ(parse_thread("0"), (ThreadSelector{ThreadSelector::kAny, 0}));
  EXPECT_EQ(parse_thread("-1"), (ThreadSelector{ThreadSelector::kAll, ThreadSelector::kAll}));
  EXPECT_EQ(format_thread({0x1f, 0x2a}), "p1f.2a");
}

TEST(ThreadIds, ThatAreNone) {
  for (const char* text : {"", "p", "p.", "p1.", "p.1", "x", "p1.x", "-2", "p80000000.1",
                           "fffffffffffffffff", "p1.1.1", "p1f.ffffffff"})
    EXPECT_FALSE(parse_thread(text)) << text;
}

TEST(StopReplies, TellThreadPlaceAndReason) {
  auto stop = parse_stop_reply("T0506:0000;10:7856341200000000;thread:p10.11;core:3;swbreak:;");
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->kind, StopReply::Kind::kStopped);
  EXPECT_EQ(stop->signal, 5);
  EXPECT_EQ(stop->pc, Address{0x12345678});
  EXPECT_EQ(stop->thread, (ThreadSelector{0x10, 0x11}));
  EXPECT_EQ(stop->reasons, StopReply::kSwBreak);
}

TEST(StopReplies, OfLldbServerNameTheReason) {
  auto stop = parse_stop_reply("T05thread:p10.11;threads:10,11;thread-pcs:0012,0034;reason:trace;");
  ASSERT_TRUE(stop);
  EXPECT_TRUE(stop->is_plain_trap());
  EXPECT_EQ(stop->threads, "10,11");
  EXPECT_EQ(stop->thread_pcs, "0012,0034");
  auto reasons = [](const char* text) { return parse_stop_reply(text)->reasons; };
  EXPECT_EQ(reasons("T05thread:p1.1;reason:breakpoint;"), StopReply::kSwBreak);
  EXPECT_EQ(reasons("T05thread:p1.1;reason:watchpoint;"), StopReply::kWatch);
  EXPECT_EQ(reasons("T05thread:p1.1;reason:exec;"), StopReply::kExec);
  EXPECT_EQ(reasons("T13thread:p1.1;reason:signal;"), 0);
  EXPECT_EQ(reasons("T05thread:p1.1;reason:signal;"), StopReply::kOther);
}

TEST(StopReplies, OfLldbServerNameThreadsWithSignals) {
  const std::string threads =
      R"([{"name":"a","reason":"signal","signal":39,"tid":16},)"
      R"({"name":"b","reason":"trace","signal":5,"tid":17},{"name":"c","tid":18},)"
      R"({"name":"d","reason":"signal","signal":14,"tid":19}])";
  const auto signalled = [](const std::string& json) {
    const std::string text = "T05thread:p10.10;jstopinfo:" + to_hex(as_bytes(json)) + ";";
    return signalled_threads(*parse_stop_reply(text));
  };
  EXPECT_EQ(signalled(threads), (std::vector<SignalledThread>{{{16, 19}, 14}}));
  EXPECT_TRUE(signalled(R"([{"reason":"signal"},7,{"reason":"signal","tid":"x"}])").empty());
  EXPECT_TRUE(signalled(R"({"reason":"signal")").empty());
}

TEST(StopReplies, OfForksNameTheChild) {
  auto stop = parse_stop_reply("T05fork:p20.20;thread:p10.10;");
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->reasons, StopReply::kFork);
  EXPECT_EQ(stop->child, (ThreadSelector{0x20, 0x20}));
}

TEST(StopReplies, OfEnds) {
  auto exited = parse_stop_reply("W2a;process:10");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->kind, StopReply::Kind::kExited);
  EXPECT_EQ(exited->signal, 0x2a);
  EXPECT_EQ(exited->process, 0x10);
  auto killed = parse_stop_reply("X09");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->kind, StopReply::Kind::kKilled);
  EXPECT_FALSE(killed->process);
  auto thread = parse_stop_reply("w0;p10.11");
  ASSERT_TRUE(thread);
  EXPECT_EQ(thread->kind, StopReply::Kind::kThreadExited);
  EXPECT_EQ(thread->thread, (ThreadSelector{0x10, 0x11}));
  EXPECT_EQ(parse_stop_reply("N")->kind, StopReply::Kind::kNothingRuns);
}

TEST(StopReplies, ThatAreNone) {
  for (const char* text : {"", "OK", "T", "T0", "Tzz", "W", "Wzz", "w0", "w0;x", "Nx", "E01"})
    EXPECT_FALSE(parse_stop_reply(text)) << text;
  auto odd = parse_stop_reply("T05thread:;10:12;:;;10:zzzzzzzzzzzzzzzz");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->thread);
  EXPECT_FALSE(odd->pc);
}

TEST(RequestsToRun, TheFirstActionThatNamesAThreadCounts) {
  auto actions = parse_resume("vCont;s:p1.2;C0b:p1.-1;r10,20:p2.2;c", {});
  ASSERT_TRUE(actions);
  EXPECT_EQ(action_for(*actions, {1, 2})->kind, ResumeAction::Kind::kStep);
  EXPECT_EQ(action_for(*actions, {1, 3})->signal, 0x0b);
  EXPECT_TRUE(action_for(*actions, {2, 2})->in_range({0x1f}));
  EXPECT_FALSE(action_for(*actions, {2, 2})->in_range({0x20}));
  EXPECT_EQ(action_for(*actions, {3, 3})->kind, ResumeAction::Kind::kContinue);
  EXPECT_EQ(format_resume(*actions), "vCont;s:p1.2;C0b:p1.-1;r10,20:p2.2;c");
}

TEST(RequestsToRun, RecordedProcessesGoByStepsAndOthersRun) {
  auto actions = parse_resume("vCont;C0a:p1.1;c", {});
  ASSERT_TRUE(actions);
  EXPECT_EQ(format_resume(in_steps(*actions, {1})), "vCont;S0a:p1.1;s:p1.-1;c");
}

TEST(RequestsToRun, ThatAreNone) {
  for (const char* text : {"", "vCont", "vCont;", "vCont;x", "vCont;C", "vCont;Czz", "vCont;C123",
                           "vCont;r1", "vCont;r1,", "vCont;s:", "vCont;s:p", "vCont;c;", "c100"})
    EXPECT_FALSE(parse_resume(text, {})) << text;
}

TEST(Transfers, AreCutAsAsked) {
  auto request = parse_transfer_read("qXfer:btrace:read:all:2,3");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->object, "btrace");
  EXPECT_EQ(request->annex, "all");
  EXPECT_EQ(transfer_answer("abcdefg", *request), "mcde");
  request->length = 5;
  EXPECT_EQ(transfer_answer("abcdefg", *request), "lcdefg");
  request->offset = ~0ull;
  EXPECT_EQ(transfer_answer("abcdefg", *request), "l");
  request->offset = 0;
  EXPECT_EQ(transfer_answer("a#b", *request),
            "la}\x03"
            "b");
}

TEST(Transfers, StayWithinAPacketWhateverIsAskedFor) {
  auto request = parse_transfer_read("qXfer:btrace:read:all:0,ffffffffffffffff");
  ASSERT_TRUE(request);
  std::string document(1 << 20, '}');
  std::string answer = transfer_answer(document, *request);
  EXPECT_EQ(answer.front(), 'm');
  EXPECT_LE(answer.size(), FrameParser::kMaxPayload_bytes);
}

TEST(Transfers, ThatAreNone) {
  for (const char* text : {"qXfer", "qXfer:a", "qXfer:a:read", "qXfer:a:read:b", "qXfer:a:read:b:0",
                           "qXfer:a:read:b:0,", "qXfer:a:write:b:0,1", "qXfer:a:read:b:x,1"})
    EXPECT_FALSE(parse_transfer_read(text)) << text;
}

TEST(Documents, HoldWhateverBytesANameIsOf) {
  EXPECT_EQ(xml_escaped("a<&>\"'\n"), "a&#60;&#38;&#62;&#34;&#39;&#10;");
  EXPECT_EQ(xml_escaped("\x01 \x1b[2J"), "? ?[2J");
  const std::string characters = "\u00fc \u20ac \ufffd \U0001f600 \U0010ffff";
  EXPECT_EQ(xml_escaped(characters), characters);
  for (const char* none :
       {"\x80", "\xc3", "\xff", "\xe4z", "\xc0\x80", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xef\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80"}) {
    const std::string shown = xml_escaped(none);
    EXPECT_EQ(shown.find_first_not_of("?z"), shown.npos) << shown;
  }
}

TEST(Features, KeepTheirOrderAndWhatIsNotUnderstood) {
  auto features = FeatureList::parse("PacketSize=3fff;a+;b-;c?;odd;;Qbtrace:bts-");
  EXPECT_TRUE(features.has("a"));
  EXPECT_FALSE(features.has("b"));
  features.set("Qbtrace:bts", "+");
  features.set("new", "+");
  features.remove("a");
  EXPECT_EQ(features.to_string(), "PacketSize=3fff;b-;c?;odd;Qbtrace:bts+;new+");
}

}  // namespace
}  // namespace tailtrace::rsp
