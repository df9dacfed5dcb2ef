// A variable that two threads write, one after the other, and two functions that do it.
#include <pthread.h>
#include <stddef.h>

volatile long counter;
volatile char letters[32];

__attribute__((noipa)) void add(long n) { counter = counter + n; }

__attribute__((noipa)) void set(long n) { counter = n; }

static void* run(void* unused) {
  for (long i = 0; i < 3; ++i) set(i);
  return unused;
}

int main(void) {
  pthread_t thread;
  for (long i = 0; i < 5; ++i) add(i);
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  letters[8] = 'a';
  return 7;
}
