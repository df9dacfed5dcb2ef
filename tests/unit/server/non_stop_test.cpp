#include "plugin/server/gdb/non_stop.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "plugin/engines/step/step_engine.h"
#include "tests/support/fake_link.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using testing::Contains;
using testing::Not;
using Words = std::vector<std::string>;

constexpr ThreadId kNobody{0x7ffffffe, 0x7ffffffe};  // of no process that there is
const std::string kId = "p7ffffffe.7ffffffe";

std::string stop_at(const std::string& pc_digits) {
  return "T05thread:" + kId + ";10:" + pc_digits + ";";
}

// All memory is NOPs, all registers are 0.
struct Session {
  EndSignals signals;
  Words stops;  // what vStopped is answered with, before OK
  siginfo_t info{};
  Below below{std::make_unique<FakeLink>([this](const std::string& r) -> Words {
                if (r.starts_with("qXfer:siginfo:read:"))
                  return {"l" + std::string(reinterpret_cast<const char*>(&info), sizeof info)};
                if (r == "g") return {std::string(2 * 164, '0')};
                if (r.starts_with('m')) return {std::string(2 * 4096, '9').replace(0, 2, "90")};
                if (r != "vStopped" || stops.empty()) return {"OK"};
                std::string first = stops.front();
                stops.erase(stops.begin());
                return {first};
              }),
              signals};
  TempFolder folder;
  StepEngine engine{folder.path(), {64}, [](ThreadId, Address, std::span<std::uint8_t> out) {
                      std::fill(out.begin(), out.end(), 0x90);
                      return out.size();
                    }};
  Recorder recorder{below, engine, &engine};
  StopJudge judge{below, recorder};
  NonStop non_stop{below, recorder, judge};

  const Words& heard() { return static_cast<FakeLink&>(below.link()).heard; }
};

TEST(NonStop, StepsOfARecordedThreadAreKeptFromTheDebugger) {
  Session s;
  ASSERT_TRUE(s.recorder.start(kNobody));
  EXPECT_EQ(*s.non_stop.resume("vCont;c:" + kId), "OK");
  EXPECT_THAT(s.heard(), Contains("vCont;s:" + kId));
  ASSERT_TRUE(s.non_stop.on_notification("Stop:" + stop_at("0100000000000000")));
  EXPECT_EQ(s.non_stop.take_announcement(), "");
  EXPECT_EQ(s.heard().back(), "vCont;s:" + kId);
  EXPECT_EQ(s.engine.snapshot(kNobody, {{1}}, ~0ull)->records.back().insns, 1u);
}

TEST(NonStop, AStepThatTheDebuggerMadeIsToldToIt) {
  Session s;
  ASSERT_TRUE(s.recorder.start(kNobody));
  EXPECT_EQ(*s.non_stop.resume("vCont;s:" + kId), "OK");
  ASSERT_TRUE(s.non_stop.on_notification("Stop:" + stop_at("0100000000000000")));
  EXPECT_EQ(s.non_stop.take_announcement(), "Stop:" + stop_at("0100000000000000"));
  EXPECT_EQ(s.non_stop.next_stop(), "OK");
}

// As in the step over a breakpoint of a thread that is to be recorded while it runs.
TEST(NonStop, AStepThatWasMadeBeforeTheThreadIsRecordedIsToldToo) {
  Session s;
  EXPECT_EQ(*s.non_stop.resume("vCont;s:" + kId), "OK");
  ASSERT_TRUE(s.recorder.start_running(kNobody));
  ASSERT_TRUE(s.non_stop.catch_running(kNobody));
  EXPECT_THAT(s.heard(), Contains("vCont;t:" + kId));
  ASSERT_TRUE(s.non_stop.on_notification("Stop:" + stop_at("0100000000000000")));
  EXPECT_EQ(s.non_stop.take_announcement(), "Stop:" + stop_at("0100000000000000"));
}

TEST(NonStop, AThreadThatWeStoppedToRecordItGoesOnBySteps) {
  Session s;
  EXPECT_EQ(*s.non_stop.resume("vCont;c:" + kId), "OK");
  ASSERT_TRUE(s.recorder.start_running(kNobody));
  ASSERT_TRUE(s.non_stop.catch_running(kNobody));
  ASSERT_TRUE(s.non_stop.on_notification("Stop:T00thread:" + kId + ";10:0000000000000000;"));
  EXPECT_EQ(s.non_stop.take_announcement(), "");
  EXPECT_EQ(s.heard().back(), "vCont;s:" + kId);
}

TEST(NonStop, TheSignalByWhichGdbserverAttachedToOrStoppedAThreadIsNobodys) {
  const std::string stop = "T11thread:" + kId + ";10:0000000000000000;";
  constexpr pid_t kServer = 1000, kAnother = 1001, kOutside = 0;  // of the namespace
  struct Case {
    int code;
    pid_t by;
    bool is_told;
    pid_t server = kServer;
  };
  for (const Case& c :
       {Case{SI_KERNEL, 0, false}, Case{SI_TKILL, kServer, false}, Case{SI_TKILL, kAnother, true},
        Case{SI_USER, kServer, true}, Case{SI_TKILL, kOutside, true, -1}}) {
    SCOPED_TRACE(testing::Message() << c.code << " by " << c.by);
    Session s;
    static_cast<FakeLink&>(s.below.link()).its_process = c.server;
    s.info.si_signo = SIGSTOP;
    s.info.si_code = c.code;
    s.info.si_pid = c.by;
    EXPECT_EQ(*s.non_stop.resume("vCont;c:" + kId), "OK");
    ASSERT_TRUE(s.non_stop.on_notification("Stop:" + stop));
    EXPECT_EQ(s.non_stop.take_announcement(), c.is_told ? "Stop:" + stop : "");
    EXPECT_EQ(s.heard().back() == "vCont;c:" + kId, !c.is_told);
  }
}

TEST(NonStop, AStopThatTheDebuggerAskedForIsToldAsOne) {
  Session s;
  ASSERT_TRUE(s.recorder.start(kNobody));
  EXPECT_EQ(*s.non_stop.resume("vCont;c:" + kId), "OK");
  EXPECT_EQ(*s.non_stop.resume("vCont;t:" + kId), "OK");
  ASSERT_TRUE(s.non_stop.on_notification("Stop:" + stop_at("0100000000000000")));
  EXPECT_EQ(s.non_stop.take_announcement(), "Stop:T00thread:" + kId + ";10:0100000000000000;");
}

TEST(NonStop, StopsAreToldOneByOne) {
  Session s;
  s.stops = {"T05thread:p2.2;", "T0bthread:p3.3;"};
  ASSERT_TRUE(s.non_stop.on_notification("Stop:T05thread:p1.1;"));
  EXPECT_EQ(s.non_stop.take_announcement(), "Stop:T05thread:p1.1;");
  EXPECT_EQ(s.non_stop.take_announcement(), "");
  EXPECT_EQ(s.non_stop.next_stop(), "T05thread:p2.2;");
  EXPECT_EQ(s.non_stop.next_stop(), "T0bthread:p3.3;");
  EXPECT_EQ(s.non_stop.next_stop(), "OK");
  EXPECT_EQ(s.non_stop.take_announcement(), "");
}

TEST(NonStop, WhatIsNoStopIsNotFetched) {
  Session s;
  ASSERT_TRUE(s.non_stop.on_notification("Other:T05thread:p1.1;"));
  EXPECT_THAT(s.heard(), Not(Contains("vStopped")));
  EXPECT_EQ(s.non_stop.take_announcement(), "");
}

}  // namespace
}  // namespace tailtrace
