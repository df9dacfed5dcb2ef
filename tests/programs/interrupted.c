// Handles interrupts by itself, and does not ask for system calls to be restarted. Ends with status
// 0 if it was interrupted just once.
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t interrupts;
static volatile int works;

void on_interrupt(int signal) {
  (void)signal;
  ++interrupts;
}

void work(void) { ++works; }

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, NULL);
  for (int i = 0; i < 3; ++i) work();
  return interrupts != 1;
}
