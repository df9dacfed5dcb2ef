// Waits in one system call after the other, each of which only SIGUSR1 should end; the status says
// which one something else did.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t is_told;

static void tell(int signal) {
  (void)signal;
  is_told = 1;
}

static int wait_in(int call) {
  struct timespec hour = {3600, 0};
  is_told = 0;
  switch (call) {
    case 1:
      return pause();
    case 2:
      return poll(NULL, 0, -1);
    case 3:
      return select(0, NULL, NULL, NULL, NULL);
    default:
      return nanosleep(&hour, NULL);
  }
}

int main(void) {
  signal(SIGUSR1, tell);
  for (int call = 1; call <= 4; ++call)
    if (wait_in(call) != -1 || errno != EINTR || !is_told) return call;
  return 0;
}
