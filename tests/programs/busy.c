// At work until somebody ends it, and says when it begins.
#include <stdio.h>

static volatile unsigned long rounds;

__attribute__((noipa)) void round_of_work(void) { ++rounds; }

int main(void) {
  puts("ready");
  fflush(stdout);
  for (;;) round_of_work();
}
