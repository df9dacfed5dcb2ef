// A thread that is made by a thread that is made by a thread: each waits for the next.
#include <pthread.h>
#include <stddef.h>

volatile int done;

__attribute__((noipa)) void third(void) { done = 3; }

__attribute__((noipa)) void second(void) { done = 2; }

static void* run_third(void* unused) {
  third();
  return unused;
}

static void* run_second(void* unused) {
  second();
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_third, NULL) != 0) return unused;
  pthread_join(thread, NULL);
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_second, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return done != 3;
}
