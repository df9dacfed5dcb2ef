#include "plugin/server/below/below.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/support/fake_link.h"

namespace tailtrace {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

constexpr ThreadId kFirst{0x10, 0x10}, kSecond{0x10, 0x11};

struct Server {
  explicit Server(FakeLink::Says says)
      : below(std::make_unique<FakeLink>(std::move(says)), signals) {}
  FakeLink& link() { return static_cast<FakeLink&>(below.link()); }

  EndSignals signals;
  Below below;
};

// Registers in which each byte tells its place.
std::string counted_registers() {
  std::string digits;
  for (int i = 0; i < 200; ++i)
    digits += "0123456789abcdef"[i / 16 % 16], digits += "0123456789abcdef"[i % 16];
  return digits;
}

TEST(Below, KeepsNotificationsThatComeBeforeTheAnswer) {
  Server server([](const std::string&) { return Words{"%Stop:T05", "%Stop:T06", "0* "}; });
  EXPECT_EQ(*server.below.ask("m0,2"), "0000");
  EXPECT_EQ(server.below.take_notification(), "Stop:T05");
  EXPECT_EQ(server.below.take_notification(), "Stop:T06");
  EXPECT_FALSE(server.below.take_notification());
}

TEST(Below, AsksOfAThreadAndPutsTheDebuggersBack) {
  Server server([](const std::string&) { return Words{"OK"}; });
  server.below.debugger_selected(kFirst);
  EXPECT_TRUE(server.below.ask_of(kSecond, "g"));
  EXPECT_TRUE(server.below.ask_of(kSecond, "g"));
  EXPECT_TRUE(server.below.restore_selection());
  EXPECT_TRUE(server.below.restore_selection());
  EXPECT_THAT(server.link().heard, ElementsAre("Hgp10.11", "g", "g", "Hgp10.10"));
}

TEST(Below, TheThreadOfAStopReplyIsSelected) {
  Server server([](const std::string&) { return Words{"OK"}; });
  server.below.debugger_selected(kFirst);
  server.below.server_selected(kSecond);
  server.below.debugger_told(kSecond);
  EXPECT_EQ(**server.below.debugger_thread(), kSecond);
  EXPECT_TRUE(server.below.restore_selection());
  EXPECT_THAT(server.link().heard, ElementsAre());
}

TEST(Below, AThreadThatVanishedIsSelectedUntilAnotherIs) {
  Server server([](const std::string&) { return Words{"OK"}; });
  server.below.debugger_selected(kFirst);
  server.below.debugger_selected_vanished();
  EXPECT_TRUE(server.below.debugger_thread_vanished());
  server.below.debugger_told(kSecond);
  EXPECT_FALSE(server.below.debugger_thread_vanished());
}

TEST(Below, ReadsRegistersOfTheTargetsByteOrder) {
  Server server([](const std::string& r) { return Words{r == "g" ? counted_registers() : "OK"}; });
  server.below.debugger_selected(kFirst);
  EXPECT_EQ(*server.below.read_register(kFirst, Below::Register::kRax), 0x0706050403020100u);
  EXPECT_EQ(server.below.read_pc(kFirst)->value, 0x8786858483828180u);
}

TEST(Below, RegistersThatAreNone) {
  for (std::string answer :
       {std::string(), std::string("E01"), std::string("0011"), std::string(1000, 'x')}) {
    Server server([&](const std::string& r) { return Words{r == "g" ? answer : "OK"}; });
    server.below.debugger_selected(kFirst);
    auto pc = server.below.read_pc(kFirst);
    ASSERT_FALSE(pc) << answer;
    EXPECT_EQ(pc.error().code, ErrorCode::kBadInput);
  }
}

TEST(Below, ReadsAsMuchMemoryAsThereIs) {
  Server server([](const std::string& r) {
    return Words{r == "m1000,800" ? std::string(0x1000, '9') : r == "m1800,10" ? "9999" : "E01"};
  });
  server.below.debugger_selected(kFirst);
  Bytes bytes(0x810);
  EXPECT_EQ(server.below.read_memory(kFirst, {0x1000}, bytes), 0x802u);
  EXPECT_EQ(bytes[0x801], 0x99);
}

TEST(Below, MoreMemoryThanAskedForIsNone) {
  Server server([](const std::string&) { return Words{"112233445566"}; });
  server.below.debugger_selected(kFirst);
  Bytes bytes(2);
  EXPECT_EQ(server.below.read_memory(kFirst, {0x1000}, bytes), 0u);
}

TEST(Below, AServerThatIsGoneIsToldOf) {
  Server server([](const std::string&) { return Words{}; });
  server.link().is_gone = true;
  auto answer = server.below.ask("?");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kGone);
}

TEST(Below, ASignalEndsTheWaitForAServerThatSaysNothing) {
  Server server([](const std::string&) { return Words{}; });
  ::kill(::getpid(), SIGTERM);  // blocked, and so it waits
  auto answer = server.below.ask("?");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kGone);
  EXPECT_EQ(server.signals.take(), SIGTERM);
}

}  // namespace
}  // namespace tailtrace
