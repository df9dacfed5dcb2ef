#include "plugin/recorder/signal_fate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace tailtrace {
namespace {

// What is done to this process with a signal, for a while.
class Disposition {
 public:
  Disposition(int signal, sighandler_t handler)
      : signal_(signal), before_(::signal(signal, handler)) {}
  ~Disposition() { ::signal(signal_, before_); }

 private:
  int signal_;
  sighandler_t before_;
};

TEST(SignalFate, EndsTheProcessWhereNothingHandlesIt) {
  for (int signal : {SIGUSR1, SIGSEGV, SIGRTMAX}) {
    Disposition nothing(signal, SIG_DFL);
    EXPECT_TRUE(is_deadly(::getpid(), signal)) << signal;
  }
}

TEST(SignalFate, DoesNotWhereItIsHandledOrIgnored) {
  Disposition handled(SIGUSR1, [](int) {});
  EXPECT_FALSE(is_deadly(::getpid(), SIGUSR1));
  Disposition ignored(SIGUSR2, SIG_IGN);
  EXPECT_FALSE(is_deadly(::getpid(), SIGUSR2));
}

TEST(SignalFate, DoesNotByDefaultWhereItStopsOrDoesNothing) {
  for (int signal : {SIGCHLD, SIGWINCH, SIGURG, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU}) {
    EXPECT_FALSE(is_deadly(::getpid(), signal)) << signal;
  }
}

TEST(SignalFate, OfAProcessThatIsNotThereIsNone) { EXPECT_FALSE(is_deadly(1 << 30, SIGUSR1)); }

}  // namespace
}  // namespace tailtrace
