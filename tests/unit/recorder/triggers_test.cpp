#include "plugin/recorder/triggers.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tailtrace {
namespace {

TEST(Triggers, SignalsHaveNamesAndNumbers) {
  for (const char* name : {"SIGUSR1", "USR1", "10"}) EXPECT_EQ(parse_signal(name), SIGUSR1) << name;
  for (const char* name : {"", "SIG", "sigusr1x", "0", "99999", "-1", "KILL", "SIGSTOP", "9"})
    EXPECT_EQ(parse_signal(name).error().code, ErrorCode::kUsage) << name;
  EXPECT_EQ(signal_text(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_text(SIGRTMIN), "signal 34");
}

TEST(Triggers, PlacesAreAlignedToTheirSizes) {
  EXPECT_EQ(parse_watched("0x1000", false), (WatchedPlace{{0x1000}, 8, false}));
  EXPECT_EQ(parse_watched("0x1006", true), (WatchedPlace{{0x1006}, 2, true}));
  EXPECT_EQ(parse_watched("0x1001", true), (WatchedPlace{{0x1001}, 1, true}));
  EXPECT_EQ(parse_watched("0x1004:4", false), (WatchedPlace{{0x1004}, 4, false}));
  for (const char* text : {"", "1000", "0x", "0xg", "0x1000:", "0x1000:3", "0x1000:16", "0x1001:2",
                           "0x1000:4:4", "0x11111111111111111"})
    EXPECT_EQ(parse_watched(text, false).error().code, ErrorCode::kUsage) << text;
}

TEST(Triggers, CrashesAreWhatDumpsCore) {
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
    EXPECT_TRUE(is_crash_signal(signal));
  for (int signal : {SIGTERM, SIGINT, SIGPIPE, SIGCHLD, SIGKILL, 0})
    EXPECT_FALSE(is_crash_signal(signal));
}

}  // namespace
}  // namespace tailtrace
