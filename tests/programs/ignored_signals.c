// Says which signals it ignores from its beginning.
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

int main(void) {
  for (int number = 1; number < SIGSYS; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
      printf("%d ", number);
  }
  return 0;
}
