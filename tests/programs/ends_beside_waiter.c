// Ends while another thread waits for a signal: the C library's own, which makes threads for
// timers.
#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile int fired;

static void on_timer(union sigval value) { fired = value.sival_int; }

int main(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
  event.sigev_value.sival_int = 3;
  const struct itimerspec soon = {{0, 0}, {0, 1000000}};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 1;
  timer_settime(timer, 0, &soon, 0);
  while (!fired) usleep(1000);
  return fired;
}
