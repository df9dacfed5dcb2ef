#include <gtest/gtest.h>
#include <signal.h>

#include "plugin/engines/protocol_signals.h"

namespace tailtrace {
namespace {

// The protocol's numbers are those of GDB's own list of signals (include/gdb/signals.def).
TEST(Signals, OfTheProtocolHaveLinuxNumbers) {
  EXPECT_EQ(system_signal(11), SIGSEGV);
  EXPECT_EQ(system_signal(10), SIGBUS);
  EXPECT_EQ(system_signal(20), SIGCHLD);
  EXPECT_EQ(system_signal(30), SIGUSR1);
}

}  // namespace
}  // namespace tailtrace
