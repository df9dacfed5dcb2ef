#include "plugin/recorder/recorder_signals.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(RecorderSignals, AreTakenOneByOne) {
  RecorderSignals signals(true);
  EXPECT_EQ(signals.take(), std::nullopt);
  ::raise(SIGUSR2);
  ::raise(SIGINT);
  EXPECT_EQ(signals.take(), SIGINT);
  EXPECT_EQ(signals.wait(), SIGUSR2);
  EXPECT_EQ(signals.take(), std::nullopt);
}

// The bundle is written by then, and what is said of it comes behind.
TEST(RecorderSignals, DoNotEndItOnceItIsDone) {
  RecorderSignals signals(true);
  for (int signal : {SIGUSR2, SIGINT, SIGTERM, SIGHUP}) ::raise(signal);
}

}  // namespace
}  // namespace tailtrace
