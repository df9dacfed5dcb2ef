// Reads the time, which is done in the vDSO.
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

__attribute__((noinline)) void done(time_t sum) { printf("%d\n", sum > 0); }

int main(void) {
  struct timeval now;
  time_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += time(NULL);
  for (int i = 0; i < 5; ++i) sum += gettimeofday(&now, NULL) + now.tv_sec;
  done(sum);
}
