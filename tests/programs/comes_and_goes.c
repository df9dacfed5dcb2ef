// Threads come and go for ever, two at a time: each computes a little in `visit`, and ends.
#include <pthread.h>

static volatile unsigned long sum;

__attribute__((noinline)) static unsigned long visit(unsigned long number) {
  unsigned long own = 0;
  for (unsigned long i = 0; i < 8; ++i) {
    if ((number + i) % 3 == 0) own += i;
    own += number;
  }
  return own;
}

static void* guest(void* number) {
  sum += visit((unsigned long)number);
  return 0;
}

int main(void) {
  for (unsigned long number = 0;; number += 2) {
    pthread_t threads[2];
    for (unsigned long i = 0; i < 2; ++i)
      if (pthread_create(&threads[i], 0, guest, (void*)(number + i)) != 0) return 1;
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  }
}
