#include "plugin/server/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tailtrace {
namespace {

// The protocol's numbers are those of GDB's own list of signals (include/gdb/signals.def).
TEST(Signals, HaveTheNumbersOfTheProtocolAndOfLinux) {
  EXPECT_EQ(system_signal(11), SIGSEGV);
  EXPECT_EQ(system_signal(10), SIGBUS);
  EXPECT_EQ(system_signal(20), SIGCHLD);
  EXPECT_EQ(system_signal(30), SIGUSR1);
  EXPECT_EQ(protocol_signal(SIGSEGV), 11);
  EXPECT_EQ(protocol_signal(SIGBUS), 10);
  EXPECT_EQ(protocol_signal(SIGCHLD), 20);
  EXPECT_EQ(protocol_signal(SIGUSR1), 30);
}

TEST(Signals, OfLinuxComeBackFromTheProtocol) {
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == SIGSTKFLT) continue;  // GDB's list has none
    EXPECT_EQ(system_signal(protocol_signal(signal)), signal);
  }
  EXPECT_EQ(protocol_signal(0), 0);
  EXPECT_EQ(protocol_signal(-1), 0);
  EXPECT_EQ(protocol_signal(99), 0);
}

}  // namespace
}  // namespace tailtrace
